import pytest
from pydantic import ValidationError

from regardant.generation.config import GenerationConfig


def test_nbest_larger_than_the_beam_is_refused_with_both_numbers():
    with pytest.raises(ValidationError, match=r"nbest \(6\) must be at most beam_size \(5\)"):
        GenerationConfig(nbest=6)


@pytest.mark.parametrize(
    "setting", ["beam_size=0", "nbest=0", "length_penalty=-1", "max_length_extra=0", "no_repeat_ngram_size=-1"]
)
def test_a_setting_out_of_bounds_is_refused(setting):
    name, value = setting.split("=")
    with pytest.raises(ValidationError, match=name):
        GenerationConfig(**{name: int(value)})
