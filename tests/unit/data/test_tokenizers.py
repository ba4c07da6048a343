import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from tokenizers import trainers

from regardant.data import tokenizers
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, SPECIAL_TOKENS, UNK
from regardant.errors import ConfigError, DataError

KINDS = ["character", "word", "whitespace", "byte", "bpe", "unigram", "code"]
OPEN = ["byte", "bpe", "unigram", "code"]  # kinds that know no unknown
WHITE_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
CORPUS = [
    "The cat sat on the mat.",
    "The cats sat on the mats, and the dog did not.",
    "Der Hund saß nicht auf der Matte; die Katze schon.",
    "A dog (brown) looked at the cat's mat: why?",
    "the the the cat cat sat sat at at at",
] * 3

characters = st.characters(exclude_categories=["Cs", "Cn"])  # no half pairs, which are no text
texts = st.text(characters) | st.text(st.sampled_from("Thecat <eos>▁_\t\n\r\u2003\u3000\x00\u0301\u0331H😀\u200d�ßİ"))


@pytest.fixture(scope="module")
def trained() -> dict[str, Tokenizer]:
    return {kind: Tokenizer.train(TokenizerConfig(kind=kind), CORPUS, 320) for kind in KINDS}


@pytest.fixture(scope="module")
def lowered() -> dict[str, Tokenizer]:
    return {kind: Tokenizer.train(TokenizerConfig(kind=kind, lowercase=True), CORPUS, 320) for kind in KINDS}


@pytest.fixture(scope="module")
def multi30k() -> list[str]:
    folder = os.environ.get("REGARDANT_DATA")
    if folder is None:
        pytest.skip("REGARDANT_DATA names no folder of real data")
    paths = sorted(Path(folder, "multi30k").glob("*.[de][en].gz"))
    assert len(paths) == 12
    lines = [line for path in paths for line in gzip.decompress(path.read_bytes()).decode().split("\n")]
    return lines[::5]


def composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def squeezed(text: str) -> str:
    return WHITE_SPACE.sub(" ", composed(text)).strip(" ")


MEANING = {
    "character": composed,
    "byte": str,
    "code": str,
    **dict.fromkeys(("word", "whitespace", "bpe", "unigram"), squeezed),
}


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
@example("")
@example(" \t ")
@example("no<0x41>byte<eos> ▁ _ \x00")
@example("e\u0301 \u0301 H\u0331")
def test_decode_gives_back_the_normalised_text(trained: dict[str, Tokenizer], kind: str, text: str) -> None:
    tokenizer = trained[kind]
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalise(text)


@pytest.mark.parametrize("kind", OPEN)
@given(text=texts)
def test_normalising_changes_nothing_but_what_its_name_says(
    trained: dict[str, Tokenizer], kind: str, text: str
) -> None:
    assert trained[kind].normalise(text) == MEANING[kind](text)


@pytest.mark.parametrize("kind", [*OPEN, "character"])
@given(text=texts)
def test_normalising_twice_is_normalising_once(lowered: dict[str, Tokenizer], kind: str, text: str) -> None:
    tokenizer = lowered[kind]
    assert tokenizer.normalise(tokenizer.normalise(text)) == tokenizer.normalise(text)


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_multi30k_come_back(kind: str, multi30k: list[str]) -> None:
    seen = ["".join({*"".join(multi30k)})] if kind == "character" else multi30k[:4000] if kind in OPEN else multi30k
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind), seen, 1000 if kind in OPEN else 1_000_000)
    meant = [MEANING[kind](line) for line in multi30k]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(multi30k)] == meant
    assert [tokenizer.normalise(line) for line in multi30k[:4000]] == meant[:4000]


def test_normalisations_have_a_name(trained: dict[str, Tokenizer], lowered: dict[str, Tokenizer]) -> None:
    assert {kind: trained[kind].normalisation for kind in KINDS} == {
        "character": "NFC, unknown characters become �",
        "word": "NFC, white space squeezed, unknown words become <unk>",
        "whitespace": "NFC, white space squeezed, unknown words become <unk>",
        "byte": "none",
        "bpe": "NFC, white space squeezed",
        "unigram": "NFC, white space squeezed",
        "code": "none",
    }
    assert lowered["bpe"].normalisation == "lower-cased, NFC, white space squeezed"


@pytest.mark.parametrize("kind", KINDS)
def test_lower_case_is_composed(lowered: dict[str, Tokenizer], kind: str) -> None:
    others = {
        "character": "the �",
        "word": "the <unk>",
        "whitespace": "the <unk>",
        "byte": "the h\u0331",
        "code": "the h\u0331",
    }
    assert lowered[kind].normalise("THE H\u0331") == others.get(kind, "the \u1e96")


def test_a_text_is_rewritten_as_decoded_only_in_white_space_and_composition(lowered: dict[str, Tokenizer]) -> None:
    spaced = " the  cat,\nsa\u0301t "
    assert lowered["bpe"].as_written(spaced) == "the cat, s\u00e1t"
    assert lowered["word"].as_written(" the  cat\nsat ") == "the cat sat"
    assert lowered["byte"].as_written(spaced) == spaced
    assert [lowered["word"].as_written(text) for text in (" The  cat", " the  zebra")] == [" The  cat", " the  zebra"]


def test_unknown_words_and_characters_are_shown(trained: dict[str, Tokenizer]) -> None:
    assert trained["word"].normalise("The zebra, sat.") == "The <unk>, sat."
    assert trained["character"].normalise("The żebra") == "The �ebra"
    assert trained["word"].encode("zebra") == trained["character"].encode("ż") == [UNK]


@pytest.mark.parametrize("kind", KINDS)
def test_text_cannot_name_a_special_token(kind: str) -> None:
    hostile = [" ".join([*SPECIAL_TOKENS, *SPECIAL_TOKENS]), "a<eos>b <0x41> <0x00>", "<eos>"] * 10
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind), hostile, 400)
    for text in hostile:
        assert not {PAD, SOS, EOS, UNK, MASK} & set(tokenizer.encode(text))
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_have_their_ids_and_are_skipped(trained: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = trained[kind]
    assert tokenizer.tokens(range(5)) == list(SPECIAL_TOKENS)
    assert tokenizer.decode([SOS, *tokenizer.encode("The cat"), MASK, EOS, PAD, PAD]) == "The cat"


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_spans_cover_the_text_of_any_ids(trained: dict[str, Tokenizer], kind: str, data: st.DataObject) -> None:
    tokenizer = trained[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)) | texts.map(tokenizer.encode))
    spans, text = tokenizer.spans(ids), tokenizer.decode(ids)
    assert len(spans) == len(ids)
    assert "".join(text[start:end] for start, end in spans) == text
    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][: len(ids)]


def test_bytes_that_end_no_character_stand_at_the_end(trained: dict[str, Tokenizer]) -> None:
    tokenizer = trained["byte"]
    ids = tokenizer.encode("aż")[:-1]
    assert tokenizer.decode(ids) == "a�"
    assert tokenizer.spans(ids) == [(0, 1), (1, 2)]


def test_spans_merge_pieces_to_words(trained: dict[str, Tokenizer]) -> None:
    tokenizer = trained["bpe"]
    ids = tokenizer.encode("The dogcat ż.")
    text = tokenizer.decode(ids)
    words: list[str] = []
    for start, end in tokenizer.spans(ids):
        piece = text[start:end]
        words = [*words, piece.strip()] if start == 0 or piece.startswith(" ") else [*words[:-1], words[-1] + piece]
    assert len(ids) > 3
    assert words == ["The", "dogcat", "ż."]


def test_tokens_are_readable(trained: dict[str, Tokenizer]) -> None:
    def shown(kind: str, text: str) -> list[str]:
        return trained[kind].tokens(trained[kind].encode(text))

    assert shown("word", "The cat, zebra.") == ["▁The", "▁cat", ",", "<unk>", "."]
    assert shown("byte", "a ż") == ["a", "▁", "<0xC5>", "<0xBC>"]
    assert shown("bpe", "the cat") == ["▁the", "▁cat"]
    assert shown("character", "a c") == ["a", "▁", "c"]


def test_line_ends_and_tabs_are_shown_as_signs() -> None:
    code = Tokenizer.train(TokenizerConfig(kind="code"), 4 * [SOURCE], 400)
    ids = code.encode(SOURCE)
    assert code.tokens(ids)[:7] == ["def", "▁sign", "(", "number", "):", "⏎▁▁▁▁", "if"]
    assert "⏎⇥⇥" in code.tokens(ids)
    characters = Tokenizer.train(TokenizerConfig(kind="character"), ["a\tb\r\n"], 100)
    assert characters.tokens(characters.encode("a\tb\r\n")) == ["a", "⇥", "b", "␍", "⏎"]
    for tokenizer in (code, characters):
        assert not any(set("\n\t\r") & set(token) for token in tokenizer.tokens(range(tokenizer.vocab_size)))
    assert code.decode(ids) == SOURCE


@pytest.mark.parametrize("kind", ["bpe", "unigram", "code"])
def test_an_asked_size_is_met_exactly_or_refused_with_one_that_works(kind: str) -> None:
    for asked in (262, 100_000):
        with pytest.raises(ConfigError, match=f"{kind} vocab_size of {asked} does not fit") as refusal:
            Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=asked), CORPUS, 500)
        assert "\n" not in str(refusal.value)
        advised = int(re.findall(r"set vocab_size to (\d+)", str(refusal.value))[0])
        assert Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=advised), CORPUS, 500).vocab_size == advised
    assert Tokenizer.train(TokenizerConfig(kind=kind), CORPUS, 100_000).vocab_size < 1000


@pytest.mark.parametrize("kind", ["bpe", "unigram", "code"])
def test_a_size_without_room_for_pieces_is_refused_before_training(kind: str) -> None:
    with pytest.raises(ValidationError, match=rf"vocab_size \(261\) must be at least 262 for {kind}"):
        TokenizerConfig(kind=kind, vocab_size=261)


def test_more_characters_than_unigram_can_hold_are_refused_in_one_line() -> None:
    script = ["".join(map(chr, range(0x4E00, 0x4E00 + 400)))]
    with pytest.raises(ConfigError, match="unigram vocab_size of 300 does not fit this corpus") as refusal:
        Tokenizer.train(TokenizerConfig(kind="unigram"), script, 300)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", ["character", "word", "whitespace", "bpe", "unigram"])
def test_an_error_in_the_texts_is_not_hidden(kind: str) -> None:
    def broken() -> Iterator[str]:
        yield "a line"
        raise DataError("line 2 is damaged")

    with pytest.raises(DataError, match="line 2 is damaged"):
        Tokenizer.train(TokenizerConfig(kind=kind), broken(), 300)


def test_words_and_characters_spend_nothing_on_bytes() -> None:
    symbols = ["a b c d e", "f g h i j"]
    assert Tokenizer.train(TokenizerConfig(kind="word"), symbols, 1000).vocab_size == 15
    assert Tokenizer.train(TokenizerConfig(kind="character"), symbols, 1000).vocab_size == 16  # and the space


def test_brackets_with_their_labels_are_tokens_between_white_space() -> None:
    tree = "(NP (D the) (N cat) NP)"
    tokenizer = Tokenizer.train(TokenizerConfig(kind="whitespace"), [tree], 1000)
    assert tokenizer.tokens(tokenizer.encode(tree)) == ["▁(NP", "▁(D", "▁the)", "▁(N", "▁cat)", "▁NP)"]
    assert tokenizer.normalise("(NP  dogs NP)") == "(NP <unk> NP)"


def test_a_cap_keeps_the_most_frequent_words() -> None:
    tokenizer = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=7), ["b b b c c a"], 1000)
    assert tokenizer.normalise("a b c") == "<unk> b c"


DIGEST = """
import hashlib, json, sys
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
corpus, kinds = json.load(sys.stdin)
for kind in kinds:
    backend = Tokenizer.train(TokenizerConfig(kind=kind), corpus, 330).backend
    print(hashlib.sha256(backend.to_str().encode()).hexdigest())
"""


def test_the_same_texts_give_the_same_vocabulary_in_every_process() -> None:
    corpus = [*CORPUS, "many a rare sign: J Q X Y Z ä ö ü 1 2 3 4 5"]
    here = [Tokenizer.train(TokenizerConfig(kind=kind), corpus, 330).backend.to_str() for kind in KINDS]
    expected = [hashlib.sha256(text.encode()).hexdigest() for text in here]
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", DIGEST],
            input=json.dumps([corpus, KINDS]),
            env=os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.split() == expected


FORK = """
import os
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
lines = ["the cat sat on the mat"] * 1000
tokenizer = Tokenizer.train(TokenizerConfig(), lines, 300)
tokenizer.encode_batch(lines)
if os.fork() == 0:
    os._exit(len(tokenizer.encode_batch(lines)) != 1000)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_forked_process_can_encode_and_hears_no_warning() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


SOURCE = """def sign(number):
    if number < 0:
        return -1
\tif number:
\t\treturn  1   # as it was

    return 0
"""


@given(
    source=st.lists(
        st.sampled_from(["    ", "\t", "\n", "\r\n", "  ", "def", "if", "x_1", "(", "):", "==", '"é"', "# 数", "\f"])
    ).map("".join)
)
@example(SOURCE)
def test_source_text_comes_back_with_its_white_space(source: str) -> None:
    tokenizer = Tokenizer.train(TokenizerConfig(kind="code"), 4 * [SOURCE], 300)
    assert tokenizer.decode(tokenizer.encode(source)) == source
    assert "".join(tokenizer.decode_as_it_comes(tokenizer.encode(source))) == source


def test_a_line_end_and_its_indentation_are_a_token_and_a_word_has_a_space_at_most() -> None:
    tokenizer = Tokenizer.train(TokenizerConfig(kind="code"), 4 * [SOURCE], 400)
    pieces = [tokenizer.decode([token]) for token in tokenizer.encode(SOURCE)]
    assert pieces[:7] == ["def", " sign", "(", "number", "):", "\n    ", "if"]
    assert {"\n    ", "\n        ", "\n\t\t"} <= set(pieces)
    assert all(piece.strip() == piece.removeprefix(" ") for piece in pieces if piece.strip())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [True, False])
def test_a_saved_pair_is_the_same_pair(kind: str, joint: bool, tmp_path: Path) -> None:
    config = TokenizerConfig(kind=kind, joint=joint, lowercase=True)
    pair = Tokenizers.train(config, CORPUS, ["quite another corpus", "über quite another thing"] * 3, 320)
    pair.save(tmp_path / "tokenizer.json")
    loaded = Tokenizers.load(tmp_path / "tokenizer.json")
    assert os.listdir(tmp_path) == ["tokenizer.json"]
    assert (loaded.source is loaded.target) == (pair.source is pair.target) == joint
    for mine, its in ((pair.source, loaded.source), (pair.target, loaded.target)):
        assert its.config == config
        assert its.backend.to_str() == mine.backend.to_str()
        assert its.decode(its.encode("The cat, ÜBER <eos>")) == mine.normalise("The cat, ÜBER <eos>")


def test_separate_vocabularies_know_their_own_language_alone() -> None:
    pair = Tokenizers.train(TokenizerConfig(kind="word", joint=False), ["cat dog"], ["Katze Hund"], 100)
    assert pair.source.normalise("cat Katze") == "cat <unk>"
    assert pair.target.normalise("cat Katze") == "<unk> Katze"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"config": {}}', '{"config": {}, "source": {"model": 1}}'])
def test_a_file_that_is_no_tokenizer_is_refused_in_one_line(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"give the tokenizer.json of a run") as refusal:
        Tokenizers.load(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


# long texts


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
def test_a_long_text_is_encoded_as_any(trained, kind, text):
    assert trained[kind].encode_long(text).tolist() == trained[kind].encode(text)


@given(text=texts)
def test_a_long_text_is_lower_cased_as_any(text):
    for kind in ("character", "byte"):
        tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, lowercase=True), CORPUS, 320)
        assert tokenizer.encode_long(text).tolist() == tokenizer.encode(text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
def test_a_text_that_comes_id_by_id_is_the_text_at_once(trained, kind, text):
    ids = trained[kind].encode(text)
    pieces = list(trained[kind].decode_as_it_comes(iter(ids)))
    assert "".join(pieces) == trained[kind].decode(ids)
    assert all(pieces)


def test_a_character_is_there_as_soon_as_its_last_byte_is(trained):
    tokenizer = trained["byte"]
    pieces = tokenizer.decode_as_it_comes(iter([*tokenizer.encode("é"), *tokenizer.encode("😀")[:2]]))
    assert list(pieces) == ["é", "�"]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("vocab_size", [12, 320])
@given(corpus=st.lists(texts, min_size=1))
def test_the_characters_learned_are_those_of_the_library_s_own_trainer(lowercase, vocab_size, corpus):
    config = TokenizerConfig(kind="character", lowercase=lowercase)
    backend = tokenizers._untrained(config)
    trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), show_progress=False)
    backend.train_from_iterator(corpus, trainer)
    assert Tokenizer.train(config, corpus, vocab_size).backend.get_vocab() == backend.get_vocab()
