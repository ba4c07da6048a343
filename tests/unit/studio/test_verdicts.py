"""What differs between runs, in sentences with their uncertainty."""

import shutil

import pytest
from fastapi.testclient import TestClient

from regardant import run
from regardant.studio.app import make_app
from regardant.studio.verdicts import sentence


@pytest.mark.parametrize(
    ("difference", "interval", "p", "said"),
    [
        (
            1.25,
            (0.5, 2.0),
            0.01,
            "b is 1.25 above a in bleu on test (95% interval +0.50 to +2.00, p 0.010): significant",
        ),
        (
            -0.01,
            (-0.03, 0.01),
            0.4,
            "b is 0.010 below a in bleu on test (95% interval -0.030 to +0.010, p 0.400): not significant",
        ),
    ],
)
def test_a_difference_is_told_with_its_uncertainty(difference, interval, p, said):
    assert sentence("b", "a", "bleu on test", {"difference": difference, "interval": interval, "p": p}).startswith(said)


@pytest.fixture
def two(trained, tmp_path):
    """A client over two runs that differ in a setting, and their names."""
    runs = [trained(), trained("training.max_updates=2")]
    folders = [shutil.copytree(one.folder, tmp_path / name) for one, name in zip(runs, "ab", strict=True)]
    return TestClient(make_app(folders), base_url="http://localhost"), [folder.as_posix() for folder in folders]


def test_runs_that_were_not_evaluated_are_compared_by_validation_and_say_what_to_do(two):
    client, names = two
    told = client.get("/api/verdict", params={"runs": names}).json()
    assert "training.max_updates was 300, is 2" in told["settings"][names[1]]
    assert told["sentences"][0].startswith(
        ("Best loss on validation data: ", "Latest loss on validation data: ", "Not enough")
    )
    assert client.get("/api/verdict", params={"runs": [names[0], "elsewhere"]}).status_code == 404


def test_evaluated_runs_are_compared_by_a_paired_test(two):
    client, names = two
    for name in names:
        run.load(name).evaluate()
    (told, *_) = client.get("/api/verdict", params={"runs": names}).json()["sentences"]
    assert told.startswith(f"{names[1]} is ") and "95% interval" in told and "bleu on " in told


def test_evaluated_runs_without_a_paired_test_are_compared_by_validation(trained_on_text, tmp_path):
    runs = [trained_on_text(), trained_on_text("model.d_ff=32")]
    folders = [shutil.copytree(one.folder, tmp_path / name) for one, name in zip(runs, "ab", strict=True)]
    for folder in folders:
        run.load(folder).evaluate()
    client = TestClient(make_app(folders), base_url="http://localhost")
    (told,) = client.get("/api/verdict", params={"runs": [one.as_posix() for one in folders]}).json()["sentences"]
    assert told.startswith("Best loss on validation data: ")


def test_runs_of_different_tasks_have_no_score_in_common(trained, trained_on_text):
    folders = [trained().folder, trained_on_text().folder]
    client = TestClient(make_app(folders), base_url="http://localhost")
    told = client.get("/api/verdict", params={"runs": [folder.as_posix() for folder in folders]}).json()
    assert told["sentences"] == ["These runs solve different tasks: they have no score in common."]
