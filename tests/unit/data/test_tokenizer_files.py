"""A tokenizer.json that is damaged and can still be read would split texts otherwise, or take all memory."""

import json

import pytest

from regardant.data.tokenizers import Tokenizer, TokenizerConfig, Tokenizers
from regardant.errors import DataError

TEXTS = ["the cat sees the dog.", "the dog sees the cat!"] * 5
KINDS = {"word": 12, "character": 30, "bpe": 300, "unigram": 300, "code": 300, "byte": 261, "kmer": 9}


def saved(tmp_path, kind):
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind), TEXTS, KINDS[kind])
    Tokenizers(tokenizer, tokenizer).save(tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json", tokenizer


@pytest.mark.parametrize(
    ("kind", "lowercase"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in KINDS if kind != "kmer")]
)
def test_what_training_writes_is_read(tmp_path, kind, lowercase):
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, lowercase=lowercase), TEXTS, KINDS[kind])
    Tokenizers(tokenizer, tokenizer).save(tmp_path / "tokenizer.json")
    text = "ACGT" if kind == "kmer" else TEXTS[0]
    assert Tokenizers.load(tmp_path / "tokenizer.json").source.encode(text) == tokenizer.encode(text)


FIXED = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0}
DAMAGES = {
    "padding": lambda source: source.update(padding={**FIXED, "pad_token": "<pad>"}),
    "truncation": lambda source: source.update(
        truncation={"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 9}
    ),
    "normalizer": lambda source: source.update(normalizer=None),
    "pre_tokenizer": lambda source: source.pop("pre_tokenizer"),
    "model": lambda source: source["model"].update(dropout=0.5),
    "added_tokens": lambda source: source.update(added_tokens=[{"id": 9, "content": "cat"}]),
    "ids are not": lambda source: source["model"]["vocab"].update({"<mask>": 7}),
    "first ids": lambda source: source["model"]["vocab"].update({"<pad>": 1, "<sos>": 0}),
    "": lambda source: source["model"]["merges"].append(["no", "piece"]),
}


@pytest.mark.parametrize("part", DAMAGES)
def test_a_part_that_is_not_that_of_its_kind_is_named(tmp_path, part):
    path, _ = saved(tmp_path, "bpe")
    content = json.loads(path.read_text(encoding="utf-8"))
    DAMAGES[part](content["source"])
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match=rf"tokenizer\.json holds no tokenizer \(.*{part}.*give the") as error:
        Tokenizers.load(path)
    assert "\n" not in str(error.value)
