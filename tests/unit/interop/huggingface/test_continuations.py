"""Samples of an imported language model keep the space before a continuation, which decoders strip from a text."""

from types import SimpleNamespace

import pytest
import tokenizers as hf
from tokenizers import decoders, models

from regardant.interop.samples import hf as of_transformers
from regardant.interop.samples import onnx_writer
from tests.unit.interop.huggingface.names import LETTERS, SENTENCES
from tests.unit.interop.samples import sample

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

LINES = [*LETTERS, *SENTENCES, "the dog"]


@pytest.mark.usefixtures("shapes_unchecked")  # sizes of a graph are symbols
@pytest.mark.parametrize("to", ["hf", pytest.param("onnx", marks=pytest.mark.slow)])
def test_a_sample_continues_a_text_as_its_run_does(pair, tmp_path, to):
    own = pair("llama_sentence_pieces").run
    (tmp_path / "lines.txt").write_text("\n".join(LINES * 3) + "\n", encoding="utf-8")
    exported = own.export(to, tmp_path / "there", data=[tmp_path / "lines.txt"])
    assert exported.failures == () and exported.parity.identical == 1
    answers = sample(tmp_path / "there", LINES)
    assert answers == [own.generate(line, temperature=0, max_tokens=24)[0] for line in LINES]
    assert any(answer.startswith(" ") for answer in answers)


@pytest.fixture(scope="module")
def backend():
    """A tokenizer whose decoder is Llama's, with tokens for bytes."""
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581the", "\u2581cat", "s"]
    backend = hf.Tokenizer(models.BPE({piece: n for n, piece in enumerate(pieces)}, [], byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return backend


@pytest.mark.parametrize(
    ("given", "written", "text"),
    [
        (["\u2581the"], ["\u2581cat", "s"], " cats"),
        (["\u2581the", "\u2581cat"], ["s"], "s"),
        (["\u2581the", "<0xC3>", "<0xA9>"], ["\u2581cat"], " cat"),
        (["\u2581the", "<0xC3>", "<0xA9>"], ["<0xC3>", "<0xA9>", "s"], "és"),
        (["\u2581the", "<0xC3>", "<0xA9>"], ["<0xC3>", "\u2581cat"], "\N{REPLACEMENT CHARACTER} cat"),
        (["\u2581the"], [], ""),
    ],
)
def test_the_text_after_the_given_is_that_of_the_new_tokens(backend, given, written, text):
    before, after = ([backend.token_to_id(piece) for piece in pieces] for pieces in (given, written))
    plain = SimpleNamespace(decode=lambda ids, skip_special_tokens: backend.decode(ids))
    for sampler, tokenizer in ((of_transformers, plain), (onnx_writer, backend)):
        model = object.__new__(sampler.Model)
        model.tokenizer = tokenizer
        assert model.text_after(before, [*before, *after]) == text
