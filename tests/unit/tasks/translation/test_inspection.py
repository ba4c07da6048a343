import json
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from regardant.data.words import words
from regardant.errors import ConfigError, DataError, RunError
from regardant.generation.config import GenerationConfig
from regardant.inspection import capture
from regardant.models.recurrent import RecurrentConfig
from regardant.tasks.sequence_to_sequence.inspection import inspect_pair
from regardant.tasks.translation.use.translator import Translator
from tests.models import over_pairs

SOURCE, TARGET = "The judge sleeps.", "Le juge dort."
KINDS = ["Encoder self-attention", "Decoder self-attention", "Cross-attention"]


@pytest.fixture
def inspection(trained):
    return trained().inspect(SOURCE, TARGET)


@pytest.fixture
def translator(trained):
    return trained().translator


def test_the_tokens_are_those_that_the_model_read_and_wrote(inspection):
    assert inspection.inputs["source"].labels == ["▁The", "▁judge", "<unk>", ".", "<eos>"]
    assert inspection.inputs["source"].units == [("The", 1), ("judge", 1), ("sleeps", 1), (".", 1), ("<eos>", 1)]
    assert [word for word, _ in inspection.written["target"].units] == ["Le", "juge", "dort", ".", "<eos>"]


def test_every_kind_has_its_picture_with_the_words_of_its_rows_and_columns(inspection):
    encoder, decoder, cross = inspection.pictures
    assert [picture.kind for picture in inspection.pictures] == KINDS
    assert encoder.source == encoder.target == cross.source == inspection.inputs["source"].labels
    assert decoder.source == decoder.target == ["<sos>", *inspection.written["target"].labels[:-1]]
    assert cross.target == inspection.written["target"].labels
    assert all(picture.title == SOURCE and TARGET in picture.note for picture in inspection.pictures)


def test_the_pictures_hold_what_was_captured(inspection, translator):
    batch = translator.pairs([SOURCE], [TARGET])
    with torch.inference_mode(), capture(translator.model, "*.weights") as records:
        translator.model.scores(batch.source, batch.target[:, :-1])
    for picture, place in zip(inspection.pictures, sorted(records, key=lambda name: "cross" in name), strict=True):
        np.testing.assert_array_equal(picture.weights[0], records[place][0][0].numpy())


def test_without_a_target_it_is_the_model_s_own_translation(trained):
    run = trained()
    assert run.inspect(SOURCE, beam_size=1).target == run.translate([SOURCE], beam_size=1)[0].text


@pytest.mark.parametrize("kind", ["character", "byte"])
def test_pieces_are_gathered_to_the_words_they_make(trained, kind):
    tokens = (f"tokenizer.kind={kind}", "tokenizer.vocab_size=null")
    found = trained(*tokens, "training.max_updates=2", "model.max_length=128").inspect("Ça dort.", "Où ça ?")
    for pieces, text in ((found.inputs["source"], "Ça dort."), (found.written["target"], "Où ça ?")):
        assert sum(count for _, count in pieces.units) == len(pieces.labels) > len(pieces.units)
        assert [word for word, _ in pieces.units if word in text and word.strip("▁")] == [w.text for w in words(text)]
    assert found.page()


def test_the_likeliest_next_tokens_come_first_with_their_probabilities(inspection):
    assert len(inspection.details["next_tokens"]) == len(inspection.written["target"].labels)
    whole = inspection.records.whole("head.probabilities")[0]
    for best, probabilities in zip(inspection.details["next_tokens"], whole, strict=True):
        shares = [share for _, share in best]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == pytest.approx(float(probabilities.max()), abs=1e-6)


def test_one_head_the_mean_or_all_heads_are_drawn(inspection):
    names = ["Cross-attention, layer 1, head 2", "Cross-attention, layer 1, mean of heads"]
    for head, name in zip((2, None), names, strict=True):
        drawing = inspection.svg("cross-attention", 1, head)
        assert ElementTree.fromstring(drawing) is not None and name in drawing
    assert names[0] in inspection.svg(layer=1, head=2), "the last kind, where none is given"
    assert all(kind in inspection.svg() for kind in KINDS)
    one_kind = inspection.svg("Encoder self-attention")
    assert KINDS[0] in one_kind and "Cross-attention" not in one_kind
    assert inspection.png("Cross-attention").startswith(b"\x89PNG")


def test_a_drawn_head_is_the_head_of_that_number(inspection):
    drawing = ElementTree.fromstring(inspection.svg("Cross-attention", layer=1, head=2, unit="pieces"))
    cells = [float(one.get("fill-opacity")) for one in drawing.iter() if one.get("class") == "cell"]
    np.testing.assert_allclose(cells, inspection.pictures[-1].weights[0, 1].ravel(), atol=5e-4)


def test_rows_and_columns_are_words_unless_pieces_are_asked_for(inspection):
    words, pieces = inspection.svg(layer=1), inspection.svg(layer=1, unit="pieces")
    assert ">judge</text>" in words and "▁" not in words
    assert ">▁judge</text>" in pieces and "▁" not in inspection.svg()
    assert '"unit":"Words"' in inspection.page()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"kind": "cross"},
            "there is no cross: choose Encoder self-attention, Decoder self-attention, Cross-attention",
        ),
        ({"layer": 2}, "Cross-attention has no layer 2: choose 1"),
        ({"layer": 0}, "Cross-attention has no layer 0: choose 1"),
        ({"layer": 1, "head": 3}, "Cross-attention has no head 3: choose 1 to 2"),
        ({"unit": "letters"}, "unit is letters: choose words or pieces"),
    ],
)
@pytest.mark.parametrize("name", ["a.svg", "a.html", "a.json"])
def test_what_is_not_there_is_refused_and_nothing_is_written(inspection, tmp_path, name, choice, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        inspection.save(tmp_path / name, **choice)
    assert not list(tmp_path.iterdir())


def test_a_page_opens_with_the_chosen_head(inspection, tmp_path):
    inspection.save(tmp_path / "a.html", kind="Encoder self-attention", layer=1, head=2, unit="pieces")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert '"chosen":[0,0,1]' in page and '"unit":"Pieces"' in page


def test_json_of_a_choice_has_the_numbers_of_its_picture(inspection, tmp_path):
    inspection.save(tmp_path / "a.json", layer=1, head=2)
    (told,) = json.loads((tmp_path / "a.json").read_text("utf-8"))["attention"]
    assert (told["kind"], told["layer"], told["head"]) == ("Cross-attention", 1, 2)
    assert told["columns"] == ["The", "judge", "sleeps", ".", "<eos>"]
    np.testing.assert_allclose(told["weights"], inspection.pictures[-1].in_words().weights[0, 1], atol=1e-6)


FORMATS = [("a.html", b"<!doctype"), ("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF-"), ("a.json", b"{")]


@pytest.mark.parametrize(("name", "begins"), FORMATS)
def test_it_is_kept_as_the_name_of_the_file_says(inspection, tmp_path, name, begins):
    inspection.save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_name_that_says_nothing_is_refused(inspection, tmp_path):
    with pytest.raises(
        ConfigError, match=r"a.gif is none of .html, .svg, .png, .pdf, .json: give the file a name that ends"
    ):
        inspection.save(tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


def test_json_has_tokens_words_weights_and_next_tokens(inspection):
    told = json.loads(json.dumps(inspection.as_dict()))
    assert (told["source"], told["target"]) == (SOURCE, TARGET)
    assert told["source_tokens"] == inspection.inputs["source"].labels
    assert [kind["kind"] for kind in told["attention"]] == KINDS
    cross = told["attention"][-1]
    assert np.array(cross["weights"]).shape == (1, 2, len(cross["rows"]), len(cross["columns"]))
    np.testing.assert_allclose(np.array(cross["weights"]), inspection.pictures[-1].weights, atol=1e-6)
    assert told["next_tokens"][0][0][0] == inspection.details["next_tokens"][0][0][0]
    assert "decoder.layers.0.cross_attention.scores" in told["places"]


def test_a_notebook_shows_the_page(inspection):
    assert inspection._repr_html_().startswith("<iframe srcdoc=")


def test_a_blank_text_and_one_too_long_are_refused(translator):
    with pytest.raises(DataError, match="the text is blank: give a sentence to look at"):
        inspect_pair(translator, "  ", None, GenerationConfig())
    with pytest.raises(DataError, match=r"line 1 has \d+ tokens, the model takes 48: shorten it"):
        inspect_pair(translator, "word " * 60, "mot", GenerationConfig())


def one_layer(translator, **model):
    """An untrained translator of another model, with the same words."""
    torch.manual_seed(0)
    size = translator.tokenizers.source.vocab_size
    config = RecurrentConfig(hidden_size=8, embedding_size=8, **model)
    return Translator(over_pairs(config, size), translator.tokenizers, translator.device)


def test_a_recurrent_model_shows_its_alignment(translator):
    found = inspect_pair(one_layer(translator), SOURCE, TARGET, GenerationConfig())
    (picture,) = found.pictures
    assert picture.kind == "Cross-attention"
    assert picture.weights.shape == (1, 1, 5, 5)
    assert "encoder.layers.0.update_gate" in found.records


def test_a_model_without_attention_has_numbers_and_no_picture(translator, tmp_path):
    found = inspect_pair(one_layer(translator, decoder={"kind": "sutskever"}), SOURCE, TARGET, GenerationConfig())
    with pytest.raises(RunError, match=r"no attention that could be drawn: give a name that ends in .json"):
        found.save(tmp_path / "a.html")
    found.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["attention"] == []
