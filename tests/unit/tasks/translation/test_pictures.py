import json
import shutil

import pytest

from regardant import run
from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.words import words
from regardant.errors import RunError
from regardant.generation.config import GenerationConfig
from regardant.tasks.translation.look.pictures import lecture_drawing, lecture_page, lecture_pictures

GENERATION = GenerationConfig(beam_size=2)
SCORES = {
    "bleu": 12.34,
    "chrf": 56.78,
    "alignment_error_rate": 0.125,
    "alignment": {"layer": 0, "head": 1, "shift": True, "threshold": 0.5, "validation_error_rate": 0.1},
}


@pytest.fixture(params=[(), ("tokenizer.lowercase=true",)], ids=["cased", "lower-case"])
def translator(request, trained):
    return trained(*request.param).translator


@pytest.fixture
def pictures(translator):
    return lecture_pictures(translator, GENERATION, SCORES)


def test_a_picture_has_the_words_of_the_sentence_and_of_its_translation(translator, pictures):
    assert [picture.title for picture in pictures] == [pair.source for pair in LECTURE_SENTENCES]
    translations = translator.generate([picture.title for picture in pictures], GENERATION)
    for picture, translation in zip(pictures, translations, strict=True):
        assert picture.source == [word.text for word in words(picture.title)]  # also where the vocabulary lacks them
        assert picture.target == [word.text for word in words(translation.text)]
        assert picture.weights.shape == (1, 2, len(picture.target), len(picture.source))
        assert picture.chosen == (0, 1)


def test_a_wrong_translation_has_the_right_one_beside_it_and_no_gold_links(pictures):
    for picture, pair in zip(pictures, LECTURE_SENTENCES, strict=True):
        assert pair.target in picture.note  # a thousand pairs teach neither sentence
        assert not picture.gold


def test_the_page_holds_both_sentences_and_the_scores(pictures):
    page = lecture_page(pictures, SCORES)
    for pair in LECTURE_SENTENCES:
        assert pair.source in page and json.dumps(pair.target)[1:-1] in page
    for number in ("12.3", "56.8", "0.125"):
        assert number in page


def test_a_sentence_longer_than_the_model_has_no_picture(trained, tmp_path, monkeypatch):
    loaded, logged = run.load(shutil.copytree(trained().folder, tmp_path / "run")), []
    loaded.evaluate(beam_size=1)
    translator = loaded.trained.translator
    with monkeypatch.context() as patch:
        patch.setattr(translator, "max_length", 4)
        with pytest.raises(RunError, match=r"has nothing to draw: .* the model's 4 tokens: raise model.max_length"):
            loaded.trained.show_lecture_sentences(logged.append)
    source = translator.tokenizers.source
    lengths = [len(source.encode(pair.source)) for pair in LECTURE_SENTENCES]
    with monkeypatch.context() as patch:
        patch.setattr(translator, "fitting", lambda sources, targets: [lengths.index(min(lengths))])
        page = loaded.trained.show_lecture_sentences(logged.append).read_text(encoding="utf-8")
    shorter, longer = sorted(LECTURE_SENTENCES, key=lambda pair: len(source.encode(pair.source)))
    assert shorter.source in page and longer.source not in page
    assert logged[0] == f"{longer.source}\n  not drawn: longer than the model's 48 tokens"


def test_a_page_without_an_error_rate_has_the_other_scores(pictures):
    page = lecture_page(pictures, SCORES | {"alignment_error_rate": None})
    assert "12.3" in page and "alignment error rate" not in page


def test_one_picture_is_drawn_as_svg_with_its_words(pictures):
    drawing = lecture_drawing(pictures[-1])
    assert drawing.lstrip().startswith("<svg")
    assert all(word in drawing for word in pictures[-1].source)
