import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from regardant.data.kmers import KmerTokenizer
from regardant.data.masking import WordStarts
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.data.vocabulary import MASK, SPECIAL_TOKENS
from regardant.errors import ConfigError, DataError

PLANS = [(k, stride) for k in (1, 2, 3, 4) for stride in range(1, k + 1)]

MADE = {(k, stride): Tokenizer.train(TokenizerConfig(kind="kmer", k=k, stride=stride), [], 1000) for k, stride in PLANS}
"""The tokenizer of each k and stride."""

sequences = st.text(st.sampled_from("ACGTNacgtn"), max_size=30)


def kmers(tokenizer, text):
    return [tokenizer.pieces[token] for token in tokenizer.encode(text)]


@given(plan=st.sampled_from(PLANS), text=sequences)
def test_all_letters_come_back(plan, text):
    tokenizer = MADE[plan]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text.upper() == tokenizer.normalise(text)
    assert "".join(tokenizer.decode_as_it_comes(ids)) == text.upper()
    spans = tokenizer.spans(ids)
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]
    assert not text or (spans[0][0], spans[-1][1]) == (0, len(text))


@given(plan=st.sampled_from(PLANS), text=sequences)
def test_kmers_are_the_letters_at_their_places(plan, text):
    k, stride = plan
    ids, places = MADE[plan].locate(f" {text} ")
    pieces = [MADE[plan].pieces[token] for token in ids]
    assert pieces == [text[start - 1 : end - 1].upper() for start, end in places]
    assert [start - 1 for start, _ in places] == [stride * number for number in range(len(ids))]
    assert all(end - start == k for start, end in places[:-1])
    assert not text or places[-1][1] == len(text) + 1


@pytest.mark.parametrize(
    ("k", "stride", "expected"),
    [
        (3, 1, ["ACG", "CGT", "GTN", "TNA", "NAC"]),
        (3, 2, ["ACG", "GTN", "NAC"]),
        (3, 3, ["ACG", "TNA", "C"]),
        (1, 1, ["A", "C", "G", "T", "N", "A", "C"]),
        (None, None, ["ACGTNA", "CGTNAC"]),
    ],
)
def test_a_kmer_begins_at_each_stride(k, stride, expected):
    assert kmers(Tokenizer.train(TokenizerConfig(kind="kmer", k=k, stride=stride), [], 5), "acgtNAC") == expected


def test_the_vocabulary_is_all_kmers_whatever_the_texts_are():
    tokenizer = Tokenizer.train(TokenizerConfig(kind="kmer", k=3), ["ACGT"], 10)
    assert tokenizer.vocab_size == len(SPECIAL_TOKENS) + 5 + 25 + 125
    assert tokenizer.pieces[: len(SPECIAL_TOKENS)] == list(SPECIAL_TOKENS)


@pytest.mark.parametrize("text", ["ACGU", "ACG ACG", "AC-GT", "ACX", ">chr1", "ACÑ"])
def test_other_letters_are_refused_in_one_line(text):
    with pytest.raises(
        DataError, match=r"holds '.', and k-mers consist of A, C, G, T and N \(any base\): write N"
    ) as told:
        MADE[3, 1].encode_batch(["ACGT", text])
    assert "\n" not in str(told.value) and repr(text) in str(told.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "kmer", "k": 7}, "less than or equal to 6"),
        ({"kind": "kmer", "k": 3, "stride": 4}, r"stride \(4\) must be at most k \(3\)"),
        ({"kind": "kmer", "stride": 0}, "greater than 0"),
        ({"kind": "bpe", "stride": 2}, "k and stride are settings of kind kmer, not of bpe: leave them out"),
        ({"k": 2}, "k and stride are settings of kind kmer, not of bpe"),
    ],
)
def test_plans_that_leave_letters_out_are_refused(fields, told):
    with pytest.raises(ValidationError, match=told):
        TokenizerConfig(**fields)


@pytest.mark.parametrize("joint", [True, False])
def test_a_saved_tokenizer_is_the_same(tmp_path, joint):
    config = TokenizerConfig(kind="kmer", k=3, stride=2, joint=joint)
    Tokenizers.train(config, [], [], 5).save(tmp_path / "tokenizer.json")
    loaded = Tokenizers.load(tmp_path / "tokenizer.json")
    for tokenizer in (loaded.source, loaded.target):
        assert isinstance(tokenizer, KmerTokenizer) and tokenizer.config == config
        assert kmers(tokenizer, "ACGTT") == ["ACG", "GTT"] and tokenizer.normalisation == "upper-cased"


def test_each_kmer_is_masked_as_a_word():
    tokenizer = MADE[3, 1]
    assert WordStarts(tokenizer)(np.array([tokenizer.encode("ACGTACGT")])).all()
    assert tokenizer.decode([MASK, *tokenizer.encode("ACGT")]) == "ACGT"


def test_lower_case_is_refused():
    with pytest.raises(ConfigError, match=r"tokenizer\.lowercase: k-mers are upper case: leave it out"):
        Tokenizer.train(TokenizerConfig(kind="kmer", lowercase=True), [], 1000)
