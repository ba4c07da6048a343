"""Short stories with a question each, written by the embedded grammar.

The sentences of a story have the same few people, verbs and things, so that one word does not tell them apart: who sees
the white cat is not who sees the grey cat. A question asks for the subject (who), the object (what), the place (where)
or the time (when) of one sentence, and names its verb, subject and object, without the one asked for. An unanswerable
question asks for the subject or the object of an action that is not in the story, or for a place or a time that the
story does not tell.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random
from typing import Any, Literal, TypeVar

from pydantic import Field

from regardant.data.grammar.language import place, times
from regardant.data.grammar.lecture import the
from regardant.data.grammar.lexicon import (
    WHO,
    Adjective,
    Noun,
    Phrase,
    Polarity,
    Tense,
    Verb,
    adjectives,
    phrases,
    verbs,
)
from regardant.data.grammar.noun_phrases import fitting
from regardant.data.grammar.realisation import (
    Meanings,
    fixed,
    noun_phrase,
    prepositional_phrase,
    realise,
    without_brackets,
)
from regardant.data.grammar.spaces import Choice
from regardant.data.grammar.surface import english_text
from regardant.data.grammar.syntax import Clause, NounPhrase, PrepositionalPhrase, Question, Statement
from regardant.data.questions import ContextQuestion, QuestionsConfig

Part = Literal["subject", "object", "place", "time"]

ASKED: dict[Part, str] = {"subject": "who", "object": "what", "place": "where", "time": "when"}
"""The word that asks for a part of a sentence."""

PEOPLE, VERBS, THINGS = 3, 2, 2
"""Size of the cast of a story: people, verbs, and nouns for the objects of each verb."""

CAST, ABOUT = frozenset({"kin"}), frozenset({"clothes", "animal"})
"""Classes of the nouns of people and of things. A small vocabulary is learned quickly."""

DEEDS = ("buy", "draw", "find", "follow", "lose", "see", "steal", "want")
"""Verbs. A word-level model has to learn that "see" and "sees" are forms of one verb."""

TENSES = (Tense.PRESENT, Tense.FUTURE)

COLOUR = 5
"""Rank of the adjectives that name colours."""

SENTENCES = (2, 5)
"""Fewest and most sentences of a story."""

TOLD = 0.4
"""Probability that a sentence states its place, and that it states its time."""

Item = TypeVar("Item")


class StoriesConfig(QuestionsConfig):
    """Stories written by a small grammar, with a question each. No story is in two splits."""

    kind: Literal["stories"] = "stories"

    train_size: int = Field(40_000, gt=0)
    """Stories to train on."""

    validation_size: int = Field(1000, gt=0)
    """Stories to validate on."""

    test_size: int = Field(2000, gt=0)
    """Stories to test on."""

    no_answer_share: float = Field(0.3, ge=0, le=1)
    """Share of the questions that have no answer in their story."""

    def read(self, seed: int) -> dict[str, list[ContextQuestion]]:
        random, seen = Random(seed), set[str]()
        sizes = {"test": self.test_size, "validation": self.validation_size, "train": self.train_size}
        sets: dict[str, list[ContextQuestion]] = {name: [] for name in reversed(sizes)}
        for name, size in sizes.items():
            while len(sets[name]) < size:
                found = asked(story(random), random, answered=random.random() >= self.no_answer_share)
                if found is not None and found.context not in seen:
                    seen.add(found.context)
                    sets[name].append(found)
        return sets


@dataclass(frozen=True)
class Story:
    """Clauses of a story, and the other possible clauses of its cast."""

    told: Sequence[Clause]
    """Clauses of the sentences, one each. No two have the same verb with the same subject, nor with the same object."""
    untold: Sequence[Clause]
    """The other clauses of the same people, verbs and things."""


def story(random: Random) -> Story:
    """Draw a story."""
    tense = Choice(TENSES).draw(random)
    people = [definite(noun) for noun in sample(fitting(CAST), PEOPLE, random)]
    possible = []
    for verb in sample([verbs()[base] for base in DEEDS], VERBS, random):
        does = partial(Clause, verb=verb, tense=tense, polarity=Polarity.AFFIRMATIVE)
        things = [thing for noun in sample(things_of(verb), THINGS, random) for thing in described(noun, random)]
        possible += [does(subject=person, object=thing) for person in people for thing in things]
    told: list[Clause] = []
    wanted = SENTENCES[0] + int(random.random() * (SENTENCES[1] - SENTENCES[0] + 1))
    for clause in sample(possible, len(possible), random):
        if len(told) < wanted and not any(overlaps(clause, other) for other in told):
            when = None if clause.verb.stative else times(tense).draw(random)
            told.append(
                replace(
                    clause,
                    place=place(clause.verb, 1.0).draw(random) if random.random() < TOLD else None,
                    time=when if random.random() < TOLD else None,
                )
            )
    untold = [one for one in possible if not any(repeats(one, other) for other in told)]
    return Story(told, untold)


def asked(story: Story, random: Random, *, answered: bool) -> ContextQuestion | None:
    """Return a question about a story, or None if the story has none of this kind."""
    asks: list[tuple[Part, Clause]] = [
        (part, clause) for clause in story.told for part in ASKED if (getattr(clause, part) is not None) == answered
    ]
    if not answered:
        about: tuple[Part, ...] = ("subject", "object")
        asks = [ask for ask in asks if ask[0] in can_ask(ask[1].verb)]
        asks += [(part, clause) for clause in story.untold for part in about if asks_in_vain(part, clause, story.told)]
    if not asks:
        return None
    wanted = sample(sorted({part for part, _ in asks}), 1, random)[0]  # parts are asked for equally often
    part, clause = sample([ask for ask in asks if ask[0] == wanted], 1, random)[0]
    written = [realise(Statement(one)).source for one in story.told]
    text, context = question(part, clause), " ".join(written)
    if not answered:
        return ContextQuestion(text, context)
    number = story.told.index(clause)
    before = sum(len(one) + 1 for one in written[:number])
    start, answer = part_of(written[number], clause, part)
    return ContextQuestion(text, context, (answer,), before + start)


def question(part: Part, clause: Clause) -> str:
    """Return the question for a part of a clause. It names verb, subject and object, but no place or time."""
    bare = replace(clause, place=None, time=None)
    if part == "subject":
        return realise(Question(replace(bare, subject=WHO))).source
    bare = replace(bare, object=None) if part == "object" else bare
    return realise(Question(bare, about=phrases("about")[ASKED[part]])).source


def part_of(sentence: str, clause: Clause, part: Part) -> tuple[int, str]:
    """Return the offset and the text of a part of a written sentence."""
    start = 0
    for name in ASKED:  # in the order of a sentence
        value = getattr(clause, name)
        if value is None:
            continue
        text = in_english(value)
        start = 0 if name == "subject" else sentence.index(f" {text}", start) + 1
        if name == part:
            return start, sentence[start : start + len(text)]
        start += len(text)
    raise ValueError(f"the clause has no {part}")


def in_english(part: NounPhrase | PrepositionalPhrase | Phrase) -> str:
    """Return a part as it is written inside a sentence."""
    write: dict[type, Callable[..., Any]] = {NounPhrase: noun_phrase, PrepositionalPhrase: prepositional_phrase}
    both = write.get(type(part), fixed)(part, Meanings())
    text, _ = english_text(without_brackets(both.english))
    return text[0].lower() + text[1:]


def described(noun: Noun, random: Random) -> list[NounPhrase]:
    """Return a noun in two colours (the white cat, the grey cat), or without a colour if fewer than two fit."""
    colours = [one for one in adjectives().values() if one.rank == COLOUR and noun.fits(one.nouns)]
    return [definite(noun, one) for one in sample(colours, 2, random)] if len(colours) > 1 else [definite(noun)]


def definite(noun: Noun, *row: Adjective) -> NounPhrase:
    """Return a noun with "the" and adjectives."""
    return NounPhrase(noun, plural=False, determiner=the("singular"), adjectives=row)


@cache
def things_of(verb: Verb) -> tuple[Noun, ...]:
    """Return the objects of a verb that stories are about."""
    return tuple(noun for noun in fitting(verb.object) if noun.fits(ABOUT))


def can_ask(verb: Verb) -> set[Part]:
    """Return the parts that a question about a verb may ask for."""
    able: dict[Part, bool] = {"subject": True, "object": True, "place": bool(verb.places), "time": not verb.stative}
    return {part for part, can in able.items() if can}


def overlaps(clause: Clause, other: Clause) -> bool:
    """Return whether two clauses share their verb, and their subject or object."""
    return clause.verb is other.verb and (clause.subject == other.subject or clause.object == other.object)


def repeats(clause: Clause, other: Clause) -> bool:
    """Return whether two clauses share their verb, subject and object."""
    return clause.verb is other.verb and clause.subject == other.subject and clause.object == other.object


def asks_in_vain(part: Part, clause: Clause, told: Iterable[Clause]) -> bool:
    """Return whether no told clause answers the question for the subject or the object of `clause`."""
    other = "object" if part == "subject" else "subject"
    return not any(one.verb is clause.verb and getattr(one, other) == getattr(clause, other) for one in told)


def sample(items: Sequence[Item], count: int, random: Random) -> list[Item]:
    """Draw up to `count` items without replacement, in random order. Reproducible on every version of Python."""
    left, drawn = list(items), list[Item]()
    while left and len(drawn) < count:
        drawn.append(left.pop(int(random.random() * len(left))))
    return drawn
