import pytest

from benchmarks import ladder_demo
from regardant import config
from regardant.studies.lectures import GRAMMAR
from regardant.tasks import load_recipe


def test_all_rungs_of_the_ladder_are_climbed_on_the_grammar():
    rungs = ladder_demo.rungs()
    assert rungs[0] == "gru-fixed"
    assert sorted(f"ladder/{rung}" for rung in rungs) == [one for one in config.recipes() if one.startswith("ladder/")]
    for rung in rungs:
        loaded = load_recipe(config.recipe(f"ladder/{rung}"), [*GRAMMAR, "training.max_minutes=2"], rung)
        assert loaded.data.kind == "grammar" and loaded.training.max_minutes == 2


def test_a_rung_that_there_is_not_is_one_line():
    with pytest.raises(SystemExit, match="there is no rung fly: take of gru-fixed, "):
        ladder_demo.main(["fly"])
