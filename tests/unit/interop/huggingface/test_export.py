"""What is exported is what transformers opens, and what is imported again is the same run."""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from regardant import run
from regardant.run.importing import import_model
from regardant.training.checkpoints import load_weights
from tests.unit.interop.huggingface.names import LETTERS, NAMES

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library


def exported(one, folder):
    one.export("hf", folder)
    import_model(folder, folder.with_name("again"), log=lambda line: None)
    return run.load(folder.with_name("again"))


def require_equal(first, second):
    weights, others = (load_weights(one.folder / "model.safetensors") for one in (first, second))
    own = set(first.trained.model.state_dict())
    assert {name for name in weights if name in others} >= weights.keys() & others.keys() != set()
    for name in own & weights.keys() & others.keys():
        assert torch.equal(weights[name], others[name]), name
    for name, tensor in first.trained.model.state_dict().items():
        assert torch.equal(tensor, second.trained.model.state_dict()[name]), name


@pytest.mark.parametrize("name", NAMES)
def test_an_imported_model_comes_back_bit_for_bit(pair, tmp_path, name):
    both = pair(name)
    again = exported(both.run, tmp_path / "there")
    require_equal(both.run, again)
    given, written = (load_file(folder / "model.safetensors") for folder in (both.folder, tmp_path / "there"))
    folded = ("position_embeddings", "token_type_embeddings", "cls_token")  # a row of one is added to another
    unread = ("pooler.dense", "embed_positions")
    for tensor in written:
        if not any(part in tensor for part in folded):
            assert torch.equal(written[tensor], given.get(tensor, given.get(tensor.partition(".")[2]))), tensor
    missing = {tensor for tensor in given if tensor not in written and not any(part in tensor for part in unread)}
    prefixes = {tensor.partition(".")[0] for tensor in written}
    assert not {tensor for tensor in missing if not any(f"{prefix}.{tensor}" in written for prefix in prefixes)}
    config = again.config.model_dump()
    assert config == both.run.config.model_dump()


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit", "bert_classes"])
def test_transformers_opens_an_export_and_computes_the_same(pair, tmp_path, name):
    both = pair(name)
    both.run.export("hf", tmp_path / "there")
    opened, report = type(both.theirs).from_pretrained(tmp_path / "there", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    opened.eval()
    if name == "vit":
        inputs = {"pixel_values": torch.rand(1, 3, 12, 12)}
    else:
        loaded = type(both.tokenizer).from_pretrained(tmp_path / "there")
        inputs = dict(loaded(LETTERS[0], return_tensors="pt"))
        assert inputs["input_ids"].tolist() == both.tokenizer(LETTERS[0], return_tensors="pt")["input_ids"].tolist()
        inputs.pop("token_type_ids", None)
    if name == "t5":
        inputs["decoder_input_ids"] = inputs["input_ids"]
    with torch.inference_mode():
        assert_close(opened(**inputs).logits, both.theirs(**inputs).logits, atol=1e-6, rtol=1e-5)


NO_ONE = [None, None]


@pytest.mark.parametrize(
    ("name", "length", "around"),
    [
        ("bert", 20, ["[CLS]", "[SEP]"]),
        ("roberta", 18, ["<s>", "</s>"]),
        ("gpt2", 32, NO_ONE),
        ("llama", 32, NO_ONE),
        ("marian", 32, NO_ONE),
    ],
)
def test_an_export_names_the_length_of_the_model_and_the_tokens_around_a_text(pair, tmp_path, name, length, around):
    both = pair(name)
    both.run.export("hf", tmp_path / "there")
    opened = type(both.tokenizer).from_pretrained(tmp_path / "there")
    assert opened.model_max_length == length
    assert [opened.cls_token, opened.sep_token] == around
    assert len(opened) == len(both.tokenizer), "no name of a token that the model lacks"
