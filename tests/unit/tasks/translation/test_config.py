import pytest

from regardant.errors import ConfigError


def test_one_matrix_for_both_languages_needs_one_vocabulary(tiny_config):
    with pytest.raises(ConfigError, match=r"set model.tie_embeddings=target or tokenizer.joint=true"):
        tiny_config("tokenizer.joint=false")
    assert tiny_config("tokenizer.joint=false", "model.tie_embeddings=target").model.tie_embeddings == "target"


def test_a_run_needs_an_end(tiny_config):
    with pytest.raises(ConfigError, match="a run needs an end: set max_minutes, max_updates or max_epochs"):
        tiny_config("training.max_updates=null")


@pytest.mark.parametrize("kind", ["grammar", "reverse", "copy", "pairs"])
def test_the_data_is_told_apart_by_its_kind(tiny_config, kind):
    fields = '{"kind": "pairs", "source": "a.en", "target": "a.fr"}' if kind == "pairs" else f'{{"kind": "{kind}"}}'
    assert tiny_config(f"data={fields}").data.kind == kind
