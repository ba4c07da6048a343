"""A language model whose tokenizer puts a special token before a text reads texts after it, as transformers does."""

import shutil
from types import SimpleNamespace

import pytest
import torch

from regardant import run
from regardant.data.text import EncodedText, TextFilesConfig
from regardant.tasks.language_modelling import language_model
from tests.unit.interop.huggingface.names import LETTERS

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

TEXT = LETTERS[0]


@pytest.fixture
def own(pair, tmp_path):
    """A copy of the run to write to."""
    return run.load(shutil.copytree(pair("llama").run.folder, tmp_path / "run"))


@pytest.fixture
def theirs(pair):
    """What returns the log-probabilities [T, V] that transformers has after each token of a text, and those [T - 1] of
    the tokens themselves."""
    both = pair("llama")

    def read(text):
        ids = both.tokenizer(text, return_tensors="pt")["input_ids"]
        assert both.tokenizer.convert_ids_to_tokens(ids[0].tolist())[0] == "<s>"
        with torch.inference_mode():
            known = both.theirs(ids).logits[0].log_softmax(-1)
        return known, known[:-1].gather(1, ids[0, 1:, None])[:, 0]

    return read


@pytest.mark.parametrize("text", ["t", TEXT])
def test_a_score_is_of_all_tokens_of_the_text(own, theirs, text):
    scored, (_, expected) = own.score(text), theirs(text)
    assert (scored.tokens, scored.characters) == (len(expected), len(text))
    assert scored.nats == pytest.approx(-expected.sum().item(), rel=1e-5)


def test_a_file_is_read_after_one_such_token(own, theirs, tmp_path, monkeypatch):
    monkeypatch.setattr(language_model, "read_text", lambda file: ["the", " cat"])
    (scores,) = own.evaluate(data=[tmp_path / "file.txt"]).values()
    assert scores["loss"] == pytest.approx(-theirs("the cat")[1].mean().item(), rel=1e-5)
    assert scores["characters"] == len("the cat")
    measured = []
    monkeypatch.setattr(
        language_model,
        "measure",
        lambda model, tokenizer, name, tokens, device: SimpleNamespace(
            save=lambda folder: measured.extend(tokenizer.tokens(tokens))
        ),
    )
    own.measure(data=[tmp_path / "file.txt"])
    assert measured[0] == "<s>" and measured.count("<s>") == 1 and len(measured) > 1


def test_an_inspection_shows_the_token_in_no_word(own, theirs):
    found, (known, _) = own.inspect(TEXT), theirs(TEXT)
    read = found.inputs["text"]
    assert read.labels[0] == "<s>" and len(read.labels) == len(known)
    assert [word for word, _ in read.units] == ["<s>", *TEXT.split()]
    assert sum(count for _, count in read.units) == len(read.labels)
    shares = [best[0][1] for best in found.details["next_tokens"]]
    assert shares == pytest.approx(known.exp().amax(-1).tolist(), rel=1e-4)


def test_a_trace_begins_with_the_token(own, theirs):
    found = own.trace("a cat", "o cat")
    assert found.clean[0] == found.corrupted[0] == "<s>"
    row = own.trained.tokenizer.rows[found.patching.answer]
    assert found.patching.clean == pytest.approx(theirs("a cat")[0][-1, row].item(), rel=1e-4)


def test_examples_leave_room_for_the_token(own, tmp_path):
    (tmp_path / "long.txt").write_text("the old cat sat on a mat " * 90, encoding="utf-8")
    text = TextFilesConfig(source=str(tmp_path / "long.txt"))
    EncodedText.build(text, text.sizes(), own.trained.tokenizer, own.folder / "data")
    (example,) = own.trained.examples(1, tmp_path)
    assert len(own.inspect(example.item).inputs["text"].labels) == own.config.model.max_length


def test_an_export_is_compared_on_texts_that_leave_room_for_the_token(own, tmp_path):
    (tmp_path / "long.txt").write_text("the old cat sat on a mat " * 9, encoding="utf-8")
    exported = own.export("hf", tmp_path / "there", data=[tmp_path / "long.txt"])
    assert exported.failures == () and exported.parity.identical == 1
