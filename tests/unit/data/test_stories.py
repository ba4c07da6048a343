from collections import Counter
from random import Random

import pytest

from regardant.data.grammar.realisation import realise
from regardant.data.grammar.syntax import Statement
from regardant.data.stories import (
    ASKED,
    SENTENCES,
    StoriesConfig,
    asked,
    asks_in_vain,
    overlaps,
    part_of,
    question,
    story,
)


@pytest.fixture(scope="module")
def stories():
    random = Random(1)
    return [story(random) for _ in range(150)]


def test_every_answer_stands_in_its_story_and_every_word_asks():
    sets = StoriesConfig(train_size=200, validation_size=20, test_size=30).read(1)
    assert {name: len(found) for name, found in sets.items()} == {"train": 200, "validation": 20, "test": 30}
    questions = [one for found in sets.values() for one in found]
    assert len({one.context for one in questions}) == len(questions)
    for one in questions:
        assert all(one.context.startswith(answer, one.start) for answer in one.answers)
        assert one.question.endswith("?") and SENTENCES[0] <= one.context.count(".") <= SENTENCES[1]
    answered = sum(bool(one.answers) for one in questions) / len(questions)
    assert 0.6 < answered < 0.8
    words = Counter(one.question.split()[0].lower() for one in questions if one.answers)
    assert words.keys() == set(ASKED.values()) and min(words.values()) > 15
    assert StoriesConfig(train_size=200, validation_size=20, test_size=30).read(1) == sets


def test_a_question_is_about_one_sentence(stories):
    for one in stories:
        for number, clause in enumerate(one.told):
            assert not any(overlaps(clause, other) for other in one.told[:number])
            sentence = realise(Statement(clause)).source
            for part in ASKED:
                if getattr(clause, part) is None:
                    continue
                start, answer = part_of(sentence, clause, part)
                assert sentence[start:].startswith(answer)
                # the question has all of the others of subject, verb and object, and not its answer
                assert answer.lower() not in question(part, clause).lower()
            subject, thing = (part_of(sentence, clause, part)[1].lower() for part in ("subject", "object"))
            asks = {part: question(part, clause).lower() for part in ASKED}
            assert thing in asks["subject"] and subject in asks["object"]
            assert all(one in asks[part] for one in (subject, thing) for part in ("place", "time"))


def test_a_question_without_an_answer_is_about_what_nobody_did_or_told(stories):
    random = Random(2)
    for one in stories:
        found = asked(one, random, answered=False)
        assert found is not None and found.answers == ()
        word = found.question.split()[0].lower()
        if word == "who":  # another sentence tells that the same is done to something else
            assert not any(found.question.lower() == question("subject", clause).lower() for clause in one.told)
        if word in ("where", "when"):
            part = "place" if word == "where" else "time"
            (told,) = (clause for clause in one.told if question(part, clause) == found.question)
            assert getattr(told, part) is None


def test_what_somebody_did_is_not_asked_in_vain(stories):
    one = stories[0]
    assert not any(asks_in_vain(part, clause, one.told) for clause in one.told for part in ("subject", "object"))
    assert any(asks_in_vain("subject", clause, one.told) for clause in one.untold)
