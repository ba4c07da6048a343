import pytest

from regardant.data.parallel import PairsConfig
from regardant.errors import DataError

SOURCES = ["one", "", "two", "two", "three", "four", "five", "six"]
TARGETS = ["un", "x", "deux", "deux", "trois", "quatre", "cinq", "six six"]
LINES = [f"{n}-{n}" for n in range(8)]


@pytest.fixture
def config(tmp_path):
    for name, lines in (("a.en", SOURCES), ("a.fr", TARGETS), ("a.links", LINES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sizes = {"validation_size": 1, "test_size": 1}
    return PairsConfig(root=str(tmp_path), source="a.en", target="a.fr", links="a.links", **sizes)


def pairs_of(splits):
    return list(zip(splits.train["source"], splits.train["target"], strict=True))


def test_each_pair_that_is_left_keeps_its_line(config, tmp_path):
    pairs = pairs_of(config.read(tmp_path / "text", seed=1))
    assert 3 < len(pairs) < 6
    first_line = dict(reversed(list(zip(zip(SOURCES, TARGETS, strict=True), LINES, strict=True))))
    assert list(config.training_links(pairs)) == [first_line[pair] for pair in pairs]


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (LINES[:-1], r"a\.links must have a line for each pair of .*, but .*a\.links ends before line 8"),
        ([*LINES, "8-8"], r"a\.links must have a line for each pair of .*, but a\.en and a\.fr ends before line 9"),
    ],
)
def test_a_file_of_another_length_is_one_line(config, tmp_path, kept, message):
    (tmp_path / "a.links").write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(config.training_links(pairs_of(config.read(tmp_path / "text", seed=1))))


def test_another_text_is_refused(config):
    with pytest.raises(DataError, match="is not the text that the run was begun with: restore it, or begin anew"):
        list(config.training_links([("one", "un"), ("one", "deux")]))
