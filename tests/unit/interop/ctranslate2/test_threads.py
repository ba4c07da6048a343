import json

import pytest

from regardant.interop.ctranslate2 import threads
from regardant.interop.ctranslate2.export import export
from regardant.interop.ctranslate2.threads import Choice, Speeds, Threads, choose_threads, speeds_of

WORDS = ["<pad>", "<sos>", "<eos>", "<unk>", "<mask>", "the", "cat"]


APART, TOGETHER = Threads(4, 1), Threads(1, 4)


@pytest.fixture
def measured(monkeypatch):
    """Which settings were timed; what each is said to reach can be set by `measured.speeds`."""

    class Timed(list):
        speeds = (Speeds(20.0, 2.0), Speeds(10.0, 1.0))
        """Of batches by themselves, and of all threads on one."""

    def time(folder, setting, num_batches, vocabulary):
        timed.append(setting)
        return timed.speeds[setting.batches == 1]

    timed = Timed()
    monkeypatch.setattr(threads, "speeds_of", time)
    return timed


def test_one_core_leaves_nothing_to_choose(tmp_path, measured):
    assert choose_threads(tmp_path, 1, WORDS) == Choice(Threads(1, 1), Threads(1, 1))
    assert not measured and not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("speeds", "chosen"),
    [
        ((Speeds(20.0, 2.0), Speeds(10.0, 1.0)), Choice(APART, APART)),
        ((Speeds(20.0, 1.0), Speeds(10.0, 2.0)), Choice(APART, TOGETHER)),
        ((Speeds(10.0, 2.0), Speeds(20.0, 1.0)), Choice(TOGETHER, APART)),
        ((Speeds(10.0, 1.0), Speeds(20.0, 2.0)), Choice(TOGETHER, TOGETHER)),
        ((Speeds(10.0, 1.0), Speeds(10.5, 1.1)), Choice(APART, APART)),
    ],
    ids=["apart", "together alone", "together with others", "together", "a near tie"],
)
def test_the_faster_way_is_chosen_and_kept_for_these_cores(tmp_path, measured, speeds, chosen):
    measured.speeds = speeds
    assert choose_threads(tmp_path, 4, WORDS) == chosen
    assert measured == [APART, TOGETHER]
    kept = json.loads((tmp_path / "threads.json").read_text(encoding="utf-8"))
    assert kept["sentences_per_second"] == {"4x1": speeds[0]._asdict(), "1x4": speeds[1]._asdict()}
    assert choose_threads(tmp_path, 4, WORDS) == chosen
    assert len(measured) == 2, "what is kept is not measured again"
    choose_threads(tmp_path, 2, WORDS)
    assert len(measured) == 4, "other cores are"


@pytest.mark.parametrize("content", ["", "[]", '{"cores": 4}', '{"cores": 4, "many": [4, 1]}', "\x00"])
def test_what_cannot_be_read_is_measured_anew(tmp_path, measured, content):
    (tmp_path / "threads.json").write_text(content, encoding="utf-8")
    assert choose_threads(tmp_path, 4, WORDS) == Choice(APART, APART)
    assert len(measured) == 2


def test_a_folder_that_cannot_be_written_to_is_measured_each_time(tmp_path, measured):
    (tmp_path / "file").write_text("")
    assert choose_threads(tmp_path / "file", 4, WORDS) == Choice(APART, APART)
    assert choose_threads(tmp_path / "file", 4, WORDS) == Choice(APART, APART)
    assert len(measured) == 4


def test_a_model_is_timed_however_short_its_texts(build, tokenizers, tmp_path):
    export(build("max_length=3"), tokenizers, tmp_path / "e", "int8")
    assert min(speeds_of(tmp_path / "e", Threads(2, 1), 2, tokenizers.source.pieces)) > 1
