"""One item in a classifier and one text in a language model: elements, attention, and the answer with its numbers."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from regardant.errors import ConfigError, DataError, RunError
from regardant.inspection import capture
from regardant.modalities.text import units_of_spans, word_units
from regardant.pictures import head_svg

SVG = "{http://www.w3.org/2000/svg}"
TEXT = "the old cat sees the dog ."


@pytest.fixture
def inspection(trained_on_labels):
    return trained_on_labels().inspect(TEXT)


def test_an_item_is_drawn_with_its_elements_and_its_words(inspection, trained_on_labels):
    trained = trained_on_labels().trained
    (ids,) = trained.codec.encode([TEXT])
    (picture,) = inspection.pictures
    assert picture.source == picture.target == inspection.inputs["input"].labels == trained.codec.labels(ids)
    assert [word for word, _ in picture.source_units] == TEXT.split()
    with torch.inference_mode(), capture(trained.model, "*.weights") as records:
        trained.scores({"input": trained.codec.collate([ids])})
    expected = torch.cat([records.whole(place) for place in records]).numpy()
    np.testing.assert_allclose(picture.weights, expected, atol=1e-6)


def test_the_answer_and_its_probabilities_are_those_of_predict(inspection, trained_on_labels):
    (found,) = trained_on_labels().predict([TEXT])
    assert inspection.answer == found.answer == "cat first"
    assert dict(inspection.shares) == pytest.approx(found.details["probabilities"], abs=1e-6)
    assert inspection.shares[0][0] == "cat first" and inspection.shares[0][1] > 0.5
    assert inspection.note.startswith("Answer: cat first ") and "%, dog first " in inspection.note
    assert "Answer: cat first" in inspection.page()


def test_a_class_token_is_named(trained_on_labels):
    found = trained_on_labels("head={kind: sequence_class, pooling: class_token}", "training.max_updates=5").inspect(
        "the cat"
    )
    assert found.inputs["input"].labels[0] == "<class>" and len(found.pictures[0].source) == 3
    assert found.pictures[0].source_units[0] == ("<class>", 1)


def test_an_item_that_is_too_long_is_cut_and_says_so(trained_on_labels):
    found = trained_on_labels().inspect("the cat " * 20)
    assert len(found.inputs["input"].labels) == 16
    assert sum(count for _, count in found.inputs["input"].units) == 16
    assert "longer than the model's 16 tokens" in found.note


def test_a_text_is_drawn_with_what_the_language_model_would_write_next(trained_on_text):
    run = trained_on_text()
    found = run.inspect("the old cat")
    (picture,) = found.pictures
    assert picture.source == picture.target == ["▁" if letter == " " else letter for letter in "the old cat"]
    assert np.triu(picture.weights, 1).max() == 0
    assert [word for word, _ in picture.source_units if word.strip("▁ ")] == ["the", "old", "cat"]
    logits = run.trained.model.scores(**found.batch)[0].detach()
    (token, share), *_ = found.details["next_tokens"][-1]
    assert share == pytest.approx(float(logits[-1].softmax(-1).max()), abs=1e-6)
    assert found.answer.startswith(f"likeliest next: {token!r} ") and found.shares[0] == (repr(token), share)
    assert len(found.details["next_tokens"]) == len("the old cat")


def test_a_lone_space_belongs_to_the_word_after_it():
    spans = [(0, 2), (2, 3), (3, 5), (5, 7), (7, 8)]
    pieces = ["▁la", "▁", "zo", "ne", "▁"]
    assert units_of_spans("la zone ", spans, pieces) == [("la", 1), ("zone", 4)]
    assert units_of_spans("la ", spans[:2], ["▁la", "▁", "<eos>"]) == [("la", 2), ("<eos>", 1)]
    assert units_of_spans(" ", [(0, 1)], ["▁"]) == [("▁", 1)]


def test_tokens_beyond_the_text_stand_alone(trained_on_labels):
    tokenizer = trained_on_labels().trained.codec.tokenizer
    assert word_units(tokenizer, "the cat", ["▁the", "▁cat", "<eos>"]) == [("the", 1), ("cat", 1), ("<eos>", 1)]
    assert word_units(tokenizer, "the cat", ["▁the"]) == [("the", 1)]


@pytest.mark.parametrize(
    ("run", "text", "error", "message"),
    [
        ("text", "  ", DataError, "the text is blank: give a text to look at"),
        ("text", "the cat " * 20, DataError, "the text has 160 tokens, the model takes 16: shorten it"),
        ("labels", " ", DataError, "item 1 is blank: give a text"),
    ],
)
def test_a_text_that_cannot_be_read_is_one_line(trained_on_text, trained_on_labels, run, text, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        {"text": trained_on_text, "labels": trained_on_labels}[run]().inspect(text)


def test_a_target_is_for_translators(trained_on_labels, trained_on_text):
    with pytest.raises(ConfigError, match="a run of classification is inspected without target: leave that out"):
        trained_on_labels().inspect(TEXT, target="le chat")
    with pytest.raises(ConfigError, match="a language model is inspected without target: leave that out"):
        trained_on_text().inspect(TEXT, target="le chat")


def test_options_of_a_search_are_refused_where_nothing_is_searched(trained_on_labels):
    labels = trained_on_labels()
    with pytest.raises(
        ConfigError, match="a run of classification is scored without beam_size, engine: leave that out"
    ):
        labels.evaluate(beam_size=5, length_penalty=None, engine="ctranslate2")
    with pytest.raises(ConfigError, match="a run of classification predicts without beam_size: leave that out"):
        labels.predict([TEXT], beam_size=5)


def test_without_attention_there_are_numbers_and_no_picture(trained_on_labels, tmp_path):
    found = trained_on_labels("model={kind: recurrent}", "training.max_updates=5").inspect(TEXT)
    assert not found.pictures and "encoder.layers.0.forget_gate" in found.records
    with pytest.raises(RunError, match=r"no attention that could be drawn: give a name that ends in .json"):
        found.save(tmp_path / "a.svg")
    with pytest.raises(RunError, match="no attention to choose from: leave out --kind, --layer, --head and --unit"):
        found.save(tmp_path / "a.json", layer=1)
    found.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["attention"] == []


@pytest.mark.parametrize("mixer", ["{kind: dense}", "{kind: convolution, kernel: 3}"])
def test_weights_of_positions_are_drawn_in_the_place_of_attention(regardant, trained_on_labels, tmp_path, mixer):
    run = trained_on_labels(f"model.self_attention={mixer}", "model.positions.kind=learned", "training.max_updates=5")
    found = run.inspect(TEXT)
    (picture,) = found.pictures
    assert (picture.kind, picture.source) == ("Encoder self-attention by position", found.inputs["input"].labels)
    sizes = torch.stack([found.records.whole(name) for name in found.records if "position_weights" in name], 1).abs()
    np.testing.assert_allclose(picture.weights, (sizes / sizes.max()).transpose(0, 1).numpy(), atol=1e-6)
    assert "They belong to positions" in picture.note
    assert "100% of the largest weight" in head_svg(picture, 0, 0)
    said = regardant(
        "inspect", run.folder, TEXT, "--kind", "encoder-self-attention-by-position", "--out", tmp_path / "a.svg"
    )
    assert said.code == 0 and (tmp_path / "a.svg").read_bytes().startswith(b"<svg")


def test_weights_of_positions_stay_between_pieces(trained):
    stacks = [f"model.{stack}.self_attention={{kind: convolution, kernel: 3}}" for stack in ("encoder", "decoder")]
    pieces = ("tokenizer.kind=character", "tokenizer.vocab_size=null", "model.max_length=128")
    found = trained(*stacks, *pieces, "training.max_updates=2").inspect("the cat", "le chat")
    *by_position, cross = found.pictures
    assert len(by_position) == 2 and cross.has_words
    for picture in by_position:
        assert not picture.has_words and picture.in_words() is picture
        assert picture.weights.max() == pytest.approx(1)
    assert found.page() and found.svg()


RECURRENT = "model={kind: recurrent, embedding_size: 16, hidden_size: 16}"
BAG = "model={kind: bag}"


@pytest.mark.parametrize(("kind", "places"), [("language model", ["forget_gate", "state"]), ("bag", ["input.written"])])
def test_a_model_without_attention_answers_and_refuses_in_one_line(
    regardant, trained_on_text, trained_on_labels, tmp_path, kind, places
):
    texts = {"language model": "the old cat", "bag": TEXT}
    brief = ("training.max_updates=5", "training.validate_every=5")
    run = trained_on_text(RECURRENT, *brief) if kind == "language model" else trained_on_labels(BAG, *brief)
    said = regardant("inspect", run.folder, texts[kind], "--out", tmp_path / "a.json")
    assert said.code == 0 and said.out == f"{run.inspect(texts[kind]).answer}\n"
    told = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert told["attention"] == [] and all(any(place in one for one in told["places"]) for place in places)
    for name in ("a.html", "a.svg", "a.png"):
        said = regardant("inspect", run.folder, texts[kind], "--out", tmp_path / name)
        assert (said.code, said.err.count("\n"), (tmp_path / name).exists()) == (2, 1, False)
        assert "no attention that could be drawn: give a name that ends in .json" in said.err
    said = regardant("measure", run.folder)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "this model has no attention to measure: evaluate it, or measure one with attention" in said.err


@pytest.mark.parametrize("kind", ["labels", "text"])
@pytest.mark.parametrize(("name", "begins"), [("a.html", b"<!doctype"), ("a.svg", b"<svg"), ("a.png", b"\x89PNG")])
def test_the_command_draws_any_run(regardant, trained_on_labels, trained_on_text, tmp_path, kind, name, begins):
    run, text = {"labels": (trained_on_labels(), TEXT), "text": (trained_on_text(), "the old cat")}[kind]
    said = regardant("inspect", run.folder, text, "--out", tmp_path / name)
    assert said.code == 0, said.err
    assert said.out == f"{run.inspect(text).answer}\n"
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_json_has_elements_the_answer_and_all_weights(regardant, trained_on_labels, tmp_path):
    assert regardant("inspect", trained_on_labels().folder, TEXT, "--out", tmp_path / "a.json").code == 0
    told = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert (told["item"], told["answer"], told["label"]) == (TEXT, "cat first", "cat first")
    assert told["probabilities"]["cat first"] == told["probability"]
    (kind,) = told["attention"]
    assert kind["rows"] == kind["columns"] == told["inputs"]["input"]["labels"]
    assert np.array(kind["weights"]).shape == (2, 2, len(kind["rows"]), len(kind["columns"]))
    said = regardant("inspect", trained_on_labels().folder, TEXT, "--target", "x", "--out", tmp_path / "b.json")
    assert (said.code, said.err.count("\n")) == (2, 1) and not (tmp_path / "b.json").exists()


def test_an_image_is_drawn_as_its_picture_with_the_grid_of_patches(trained_on_digits, digit):
    run = trained_on_digits()
    found = run.inspect(str(digit))
    (picture,) = found.pictures
    layout = run.trained.codec.layout(run.trained.encoded(str(digit)))
    assert (layout.rows, layout.columns) == (2, 2) and layout.picture.startswith("data:image/png;base64,")
    assert picture.source_layout == picture.target_layout == layout
    assert picture.class_token is None and picture.source == list(layout.labels)
    assert found.svg().count(layout.picture) == 1 and layout.picture in found.page()
    assert found.answer in run.trained.labels


def test_the_attention_of_an_image_s_class_token_is_drawn(trained_on_digits, digit):
    given = ("head.pooling=class_token", "model.max_length=5", "training.max_updates=10", "training.validate_every=10")
    (picture,) = trained_on_digits(*given).inspect(str(digit)).pictures
    assert picture.class_token == picture.source[0] == "<class>" and len(picture.source) == 5


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.png", None, "none.png cannot be read (No such file or directory): give the path of a PNG, JPEG or .npy"),
        ("bad.png", b"no image", "bad.png cannot be read (cannot identify image file"),
        ("bad.npy", b"no array", "bad.npy cannot be read ("),
    ],
)
def test_an_image_that_cannot_be_read_is_one_line(regardant, trained_on_digits, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    said = regardant("inspect", trained_on_digits().folder, tmp_path / name, "--out", tmp_path / "a.html")
    assert (said.code, said.err.count("\n"), (tmp_path / "a.html").exists()) == (2, 1, False)
    assert message in said.err


def test_one_head_of_an_image_is_its_picture_with_shades_and_a_scale(trained_on_digits, digit):
    found = trained_on_digits().inspect(str(digit))
    (picture,) = found.pictures
    drawing = found.svg(layer=1, head=1)
    root = ElementTree.fromstring(drawing)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    weights = picture.weights[0, 0].mean(0)
    assert texts[:2] == ["Encoder self-attention, layer 1, head 1", "Shades: mean attention of all queries."]
    assert texts[-1] == f"{weights.max():.1%} of the attention"
    lit = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "lit"]
    assert [one.findtext(f"{SVG}title").rpartition(": ")[2] for one in lit] == [f"{one:.3f}" for one in weights]
    assert picture.source_layout.picture in drawing


def test_the_attention_on_a_class_token_is_told_in_words(trained_on_digits, digit):
    given = ("head.pooling=class_token", "model.max_length=5", "training.max_updates=10", "training.validate_every=10")
    found = trained_on_digits(*given).inspect(str(digit))
    share = found.pictures[0].weights[0, 1, 0, 0]
    assert f"{share:.0%} of the attention is on &lt;class&gt;, which is not drawn." in found.svg(layer=1, head=2)


@pytest.mark.parametrize("name", ["a.svg", "a.html"])
def test_a_unit_for_an_item_without_words_is_one_line(regardant, trained_on_digits, digit, tmp_path, name):
    said = regardant("inspect", trained_on_digits().folder, digit, "--unit", "words", "--out", tmp_path / name)
    assert (said.code, said.out, (tmp_path / name).exists()) == (2, "", False)
    assert said.err == "regardant: this item has no words: leave out the unit\n"


def test_a_text_stays_a_line_of_words(inspection):
    assert inspection.inputs["input"].layout is not None and inspection.inputs["input"].grid is None
    assert inspection.pictures[0].source_layout is None
