"""Runs that were trained here, exported: transformers answers as they do, and what does not fit is refused."""

import warnings

import numpy as np
import pytest
import torch

from regardant import run
from regardant.errors import ConfigError, RunError
from regardant.interop.parity import sample_of
from regardant.run.importing import import_model
from regardant.tasks import load_recipe
from tests.unit.interop.samples import sample

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

BERT = ("norm: post", "embedding_norm: true", "scale_embeddings: false", "positions: {kind: learned}")
SIZES = "d_model: 16, num_heads: 2, d_ff: 32, num_layers: 1, max_length: 16, dropout: 0.0"
TRAINING = {
    "max_updates": 30,
    "batch_tokens": 128,
    "validate_every": 30,
    "precision": "float32",
    "attention_kernel": "sdpa",
    "processes": 1,
    "schedule": {"kind": "constant", "learning_rate": 1e-2, "warmup_steps": 2},
}
LIKE_BERT = f"model={{{SIZES}, {', '.join(BERT)}, feed_forward: {{activation: gelu}}, tie_embeddings: true}}"
MASKED = {
    "task": "masked_language_modelling",
    "input": {"tokenizer": {"kind": "word", "lowercase": True}},
    "head": {"bias": True, "transform": {}},
    "training": TRAINING,
}
POST = (
    "model.norm=post",
    "model.positions={kind: sinusoidal, layout: halves}",
    "head.bias=true",
    "training.max_updates=90",
)
VIT = (
    "model.positions={kind: learned}",
    "model.scale_embeddings=false",
    "model.max_length=4",
    "head.pooling=class_token",
)
TEXT = "the cat [MASK] a red tree"
BLANKS = [
    "the [MASK].",
    "a [MASK]s, cat",
    "[MASK], dog",
    "cat [MASK] [MASK].",
    "dog[MASK][MASK]",
    "[MASK]",
    "a [MASK] tree",
]


@pytest.fixture(scope="module")
def pipeline():
    """transformers.pipeline, without what the library says while it loads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

    return transformers.pipeline


@pytest.fixture(scope="module")
def masked(made_once):
    """A masked language model of BERT's shape."""

    def train(folder):
        words = ["the", "cat", "dog", "bird", "sees", "likes", "a", "red", "old", "tree", "and", "then"]
        generator = np.random.default_rng(1)
        texts = [" ".join(generator.choice(words, generator.integers(1, 15))) for _ in range(100)]
        (folder.parent / "masked.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        recipe = {**MASKED, "data": {"source": str(folder.parent / "masked.txt")}}
        assert run.train(load_recipe(recipe, [LIKE_BERT]), folder, log=lambda line: None).finished

    return run.load(made_once("masked-like-bert", train))


@pytest.fixture(scope="module", params=["word", "bpe"])
def punctuated(request, made_once):
    """A masked language model of texts in which punctuation stands right behind words."""

    def train(folder):
        words, marks = ["cat", "cats", "dog", "dogs", "bird", "tree"], [".", ",", ""]
        generator = np.random.default_rng(2)
        texts = [
            " ".join(f"{word}{generator.choice(marks)}" for word in generator.choice(words, generator.integers(2, 7)))
            for _ in range(400)
        ]
        path = folder.parent / f"punctuated-{request.param}.txt"
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        recipe = {**MASKED, "data": {"source": str(path)}, "input": {"tokenizer": {"kind": request.param}}}
        assert run.train(load_recipe(recipe, [LIKE_BERT]), folder, log=lambda line: None).finished

    return run.load(made_once(f"punctuated-{request.param}", train))


@pytest.mark.usefixtures("shapes_unchecked")  # sizes of a graph are symbols
@pytest.mark.parametrize("to", ["hf", "torch"])
def test_text_right_behind_a_blank_is_read_as_here(punctuated, tmp_path, to):
    exported = punctuated.export(to, tmp_path / "there")
    assert exported.parity.largest_difference < 1e-4 and exported.parity.identical > 0.9, exported.parity.table()
    model, own = sample_of(tmp_path / "there").Model(tmp_path / "there"), punctuated.trained
    lines = BLANKS if to == "hf" else [*BLANKS, "a <mask> [MASK]"]  # which transformers reads as two blanks
    for line in lines:
        read = model.read(line)["input_ids"][0].tolist() if to == "hf" else model.ids(line)
        assert read == own.encoded(line).tolist(), line
    assert model.answers(lines) == [one.answer for one in punctuated.predict(lines)]


def test_some_compared_texts_have_a_blank_right_before_punctuation(punctuated):
    texts = punctuated.trained.exchange().test.texts
    assert len(texts) > 10 and all(text.count("[MASK]") == 1 for text in texts)
    assert any(text.partition("[MASK]")[2].startswith((".", ",")) for text in texts)


def test_blanks_are_filled_in_as_here(masked, pipeline, tmp_path):
    masked.export("hf", tmp_path / "there")
    fill = pipeline("fill-mask", model=str(tmp_path / "there"), top_k=15)
    theirs = [one for one in fill(TEXT.replace("[MASK]", "<mask>")) if not one["token_str"].startswith("<")]
    ours = masked.predict([TEXT])[0].details["blanks"][0]
    assert [one["token_str"].strip() for one in theirs[:5]] == [one["token"].strip() for one in ours]
    total = sum(one["score"] for one in theirs)
    assert [one["score"] / total for one in theirs[:5]] == pytest.approx([one["probability"] for one in ours], abs=1e-5)


def test_texts_are_classified_as_here(trained_on_labels, pipeline, tmp_path):
    model = "model={d_model: 32, num_heads: 2, num_layers: 1, d_ff: 64, max_length: 16, dropout: 0.0, norm: post, "
    model += (
        "embedding_norm: true, scale_embeddings: false, positions: {kind: learned}, feed_forward: {activation: gelu}}"
    )
    own = trained_on_labels(model, "head.pooling=first", "head.transform=true")
    exported = own.export("hf", tmp_path / "there")
    assert exported.failures == () and exported.parity.identical == 1 and exported.parity.largest_difference < 1e-4
    texts = ["the cat sees a dog", "a dog and then the old cat"]
    theirs = pipeline("text-classification", model=str(tmp_path / "there"), top_k=None)(texts)
    ours = [one.details["probabilities"] for one in own.predict(texts)]
    assert [{one["label"]: one["score"] for one in row} for row in theirs] == [
        pytest.approx(shares, abs=1e-5) for shares in ours
    ]


@pytest.mark.parametrize("kind", ["masked", "text", pytest.param("pairs", marks=pytest.mark.slow)])
def test_an_export_is_compared_with_its_run_and_its_sample_answers_alone(
    masked, trained_on_text, trained, tmp_path, kind
):
    own = {"masked": lambda: masked, "text": trained_on_text, "pairs": lambda: trained(*POST)}[kind]()
    exported = own.export("hf", tmp_path / "there")
    assert exported.parity.largest_difference < 1e-4 and exported.parity.score_difference < 0.1
    assert exported.parity.identical > 0.95, exported.parity.table()
    line, expected = {
        "masked": lambda: (TEXT, masked.predict([TEXT])[0].answer),
        "text": lambda: ("the cat", own.generate("the cat", temperature=0, max_tokens=8)[0]),
        "pairs": lambda: ("a dog sleeps .", own.translate(["a dog sleeps ."])[0].text),
    }[kind]()
    answer, _, nothing = sample(tmp_path / "there", [line, f"{line}\u2028{line}\r{line}", ""])
    assert answer.startswith(expected) and nothing == ""


def test_a_text_is_continued_as_here(trained_on_text, pipeline, tmp_path):
    own = trained_on_text()
    own.export("hf", tmp_path / "there")
    write = pipeline("text-generation", model=str(tmp_path / "there"))
    (theirs,) = write("the cat", do_sample=False, max_new_tokens=9, return_full_text=False)
    assert theirs["generated_text"] == own.generate("the cat", temperature=0, max_tokens=9)[0]


def test_a_sentence_is_translated_as_here(trained, pipeline, tmp_path):
    import transformers

    own = trained(*POST)
    own.export("hf", tmp_path / "there")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "there")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    sentences = ["the old cat sees a dog .", "a dog sleeps ."]
    written = model.generate(**tokenizer(sentences, return_tensors="pt", padding=True), num_beams=1, max_new_tokens=20)
    theirs = tokenizer.batch_decode(written, skip_special_tokens=True)
    assert theirs == [
        one.text for one in own.translate(sentences, beam_size=1, max_length_ratio=0, max_length_extra=20)
    ]


def test_images_are_classified_as_here(trained_on_digits, tmp_path, digit):
    import transformers

    own = trained_on_digits(*VIT)
    exported = own.export("hf", tmp_path / "there")
    assert exported.not_measured == "an export for these items has no sample program to compare with the run"
    model = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "there")
    (pixels,) = own.trained.codec.read([str(digit)])
    with torch.inference_mode():
        theirs = model(own.trained.codec.collate([pixels]).permute(0, 3, 1, 2)).logits[0].softmax(-1)
    ours = own.predict([str(digit)])[0].details["probabilities"]
    shares = {model.config.id2label[number]: float(share) for number, share in enumerate(theirs)}
    assert shares == pytest.approx(ours, abs=1e-5)


@pytest.mark.parametrize("kind", ["masked", "text", "pairs", "images"])
def test_what_is_exported_and_imported_again_is_the_same_run(
    masked, trained_on_text, trained, trained_on_digits, tmp_path, kind
):
    own = {
        "masked": lambda: masked,
        "text": trained_on_text,
        "pairs": lambda: trained(*POST),
        "images": lambda: trained_on_digits(*VIT),
    }[kind]()
    own.export("hf", tmp_path / "there")
    import_model(tmp_path / "there", tmp_path / "again", log=lambda line: None)
    again = run.load(tmp_path / "again")
    weights, others = own.trained.model.state_dict(), again.trained.model.state_dict()
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    if kind == "masked":
        assert again.predict([TEXT]) == own.predict([TEXT])
    elif kind == "text":
        assert again.generate("the cat", seed=3, max_tokens=20) == own.generate("the cat", seed=3, max_tokens=20)
    elif kind == "pairs":
        assert again.translate(["a dog sleeps ."])[0].candidates == own.translate(["a dog sleeps ."])[0].candidates


def test_a_model_without_a_layout_is_refused_by_its_settings(trained, trained_on_text, trained_on_series, tmp_path):
    with pytest.raises(RunError, match=r"is not a Hugging Face MarianMTModel.*model\.norm"):
        trained().export("hf", tmp_path / "there")
    with pytest.raises(RunError, match=r"is not a Hugging Face GPT2LMHeadModel.*model\.positions\.kind.*'alibi'"):
        trained_on_text("model.positions.kind=alibi", "training.max_updates=1", "training.validate_every=1").export(
            "hf", tmp_path / "there"
        )
    with pytest.raises(RunError, match="a run of forecasting has no Hugging Face layout"):
        trained_on_series().export("hf", tmp_path / "there")
    with pytest.raises(ConfigError, match="there is no format safetensors: take hf, ctranslate2, onnx, torch"):
        trained().export("safetensors", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_masked_language_model_of_two_activations_is_no_roberta(text_file, tmp_path):
    """RoBERTa's layout has two as well, but counts its positions from the token of padding, which it has at 1."""
    shape = f"model={{{SIZES}, {', '.join(BERT)}, feed_forward: {{activation: relu}}, tie_embeddings: true}}"
    recipe = {**MASKED, "data": {"source": str(text_file)}, "training": {**TRAINING, "max_updates": 1}}
    run.train(load_recipe(recipe, [shape]), tmp_path / "run", log=lambda line: None)
    with pytest.raises(RunError, match=r"is not a Hugging Face BertForMaskedLM, .*activation was 'relu', is 'gelu'$"):
        run.load(tmp_path / "run").export("hf", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_folder_that_holds_something_is_left_alone(masked, tmp_path):
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match="is not empty: give another --out"):
        masked.export("hf", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
