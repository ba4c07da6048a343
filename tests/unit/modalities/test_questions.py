import json
import re

import numpy as np
import pytest

from regardant.data.questions import ContextQuestion
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.errors import DataError
from regardant.modalities.questions import (
    ANSWER,
    ENDS,
    FIRST,
    LAST,
    NOWHERE,
    SEPARATOR,
    STARTS,
    TOKENS,
    QuestionsModalityConfig,
    of_context,
    question_length,
)

CONTEXT = "The  old Élodie's cat\tsees\n the 🦊 dog."
KINDS = ("word", "bpe", "unigram", "character", "byte")


def asked(answer="", question="Who sees it?"):
    answers = (answer,) if answer else ()
    return ContextQuestion(question, CONTEXT, answers, CONTEXT.find(answer) if answer else 0)


@pytest.fixture(scope="module", params=KINDS)
def codec(request):
    config = QuestionsModalityConfig(tokenizer=TokenizerConfig(kind=request.param, lowercase=request.param == "bpe"))
    return config.fit([asked(), ContextQuestion("Who is old?", "the cat sees the dog " * 20)] * 3)


def test_question_separator_and_context_are_one_text(codec):
    (encoded,) = codec.encode([asked()])
    length = question_length(encoded)
    question, context = codec.tokenizer.encode("Who sees it?"), codec.tokenizer.encode(CONTEXT)
    assert encoded[:, TOKENS].tolist() == [*question, SEPARATOR, *context] and length == len(question) + 1
    assert (encoded[:length, [STARTS, ENDS]] == NOWHERE).all() and not encoded[:, ANSWER].any()
    assert codec.collate([encoded]).tolist() == [encoded[:, TOKENS].tolist()]
    assert len(codec.labels(encoded)) == len(encoded) and codec.labels(encoded)[length - 1] == "<eos>"


def test_tokens_stand_for_characters_of_the_context_as_it_was_given(codec):
    (encoded,) = codec.encode([asked()])
    real = encoded[of_context(encoded)]
    covered = set()
    for _, start, end, _ in real.tolist():
        assert CONTEXT[start:end] == CONTEXT[start:end].strip() != ""
        covered |= set(range(start, end))
    assert covered == {number for number, letter in enumerate(CONTEXT) if not letter.isspace()}
    assert (np.diff(real[:, STARTS]) >= 0).all()


@pytest.mark.parametrize("answer", ["The", "cat", "Élodie's cat", "🦊", "the 🦊 dog", "dog.", "cat\tsees\n the"])
def test_an_answer_is_its_first_and_its_last_token(codec, answer):
    (encoded,) = codec.encode([asked(answer)])
    (first,), (last,) = (np.flatnonzero(encoded[:, ANSWER] & mark) for mark in (FIRST, LAST))
    assert CONTEXT[encoded[first, STARTS] : encoded[last, ENDS]] == answer


def test_an_answer_inside_a_token_is_the_whole_token():
    codec = QuestionsModalityConfig(tokenizer=TokenizerConfig(kind="word")).fit([asked()])
    (encoded,) = codec.encode([ContextQuestion("Who?", "two cats", ("cat",), 4)])
    (at,) = np.flatnonzero(encoded[:, ANSWER])
    assert encoded[at, ANSWER] == FIRST + LAST and encoded[at, [STARTS, ENDS]].tolist() == [4, 8]


def test_words_of_question_and_context_are_named(codec):
    one = asked()
    (encoded,) = codec.encode([one])
    item = json.dumps({"question": one.question, "context": one.context})
    units = codec.units(item, encoded)
    assert sum(count for _, count in units) == len(encoded)
    names = [name for name, _ in units if name.strip("▁")]
    expected = ["Who", "sees", "it", "?", "<eos>", "The", "old", "Élodie's", "cat", "sees", "the", "🦊", "dog", "."]
    if codec.tokenizer.config.splits_words and codec.tokenizer.config.kind != "word":
        assert names == expected
    window = np.concatenate([encoded[: question_length(encoded)], encoded[-3:]])
    assert sum(count for _, count in codec.units(item, window)) == len(window)
    assert codec.units(item, window)[-1][0] in (".", "dog")


def test_a_question_is_written_as_a_command_line_gives_it(codec, tmp_path):
    plain = ContextQuestion("who sees it", "the cat sees the dog")
    found = codec.argument(codec.encode([plain])[0], tmp_path, "x")
    if found is not None:
        assert codec.parse(found) == plain
    else:
        assert codec.unknown(codec.encode([plain])[0][:, TOKENS])


def test_both_texts_are_learned_from_and_kept(codec, tmp_path):
    codec.save(tmp_path)
    kept = QuestionsModalityConfig(tokenizer=codec.tokenizer.config).load(tmp_path)
    assert np.array_equal(kept.encode([asked("cat")])[0], codec.encode([asked("cat")])[0])
    if codec.tokenizer.config.kind == "word":
        assert {" Who", " old", " dog"} <= set(codec.tokenizer.pieces)


def test_half_a_character_is_one_line(codec):
    with pytest.raises(
        DataError, match=r"the context has half of a surrogate pair, \\ud83d: write the whole character$"
    ):
        codec.parse('{"question": "Who?", "context": "a \\ud83d"}')


@pytest.mark.parametrize("given", ["Who?", "3", "[]", '{"question": "Who?"}', '{"question": " ", "context": "a"}', "{"])
def test_an_item_without_question_and_context_is_refused(codec, given):
    told = re.escape(f'{given!r} is no question with a context: give a JSON object, as {{"question": ')
    with pytest.raises(DataError, match=f"^{told}"):
        codec.parse(given)
    assert codec.parse('{"question": "Who?", "context": "a", "answer": "a"}') == ContextQuestion("Who?", "a")
