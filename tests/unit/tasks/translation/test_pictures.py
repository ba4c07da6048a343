import json

import pytest

from regardant.data.grammar import LECTURE_SENTENCES
from regardant.generation.config import GenerationConfig
from regardant.tasks.translation.pictures import lecture_page

SCORES = {
    "bleu": 12.34,
    "chrf": 56.78,
    "alignment_error_rate": 0.125,
    "alignment": {"layer": 0, "head": 1, "shift": True, "threshold": 0.5, "validation_error_rate": 0.1},
}


@pytest.mark.parametrize("overrides", [(), ("tokenizer.lowercase=true",)], ids=["cased", "lower-case"])
def test_the_page_shows_both_sentences_and_the_scores_and_says_the_translations(trained, overrides):
    said, translator = [], trained(*overrides).translator
    page = lecture_page(translator, GenerationConfig(beam_size=2), SCORES, said.append)
    translations = translator.translate([pair.source for pair in LECTURE_SENTENCES], GenerationConfig(beam_size=2))
    assert len(LECTURE_SENTENCES) == 2
    for pair, translation, line in zip(LECTURE_SENTENCES, translations, said, strict=True):
        assert pair.source in page
        assert json.dumps(pair.target)[1:-1] in page  # as the translation, or beside a wrong one
        assert line == f"{pair.source}\n  {translation.text}"
    for number in ("12.3", "56.8", "0.125"):
        assert number in page
