"""Syntax trees of sentences. A tree holds the content shared by both languages, without word order or agreement."""

from collections.abc import Iterator
from dataclasses import dataclass

from regardant.data.grammar.lexicon import Adjective, Determiner, Noun, Phrase, Polarity, Pronoun, Tense, Verb


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Noun with its modifiers: the beautiful old house."""

    noun: Noun
    plural: bool
    determiner: Determiner
    adjectives: tuple[Adjective, ...] = ()
    """Adjectives in English order."""
    complement: "PrepositionalPhrase | None" = None
    """Complement: ... of the king."""
    relative: "Clause | None" = None
    """Relative clause, which lacks its subject or its object: ... that the king bought."""


@dataclass(frozen=True, slots=True)
class Coordination:
    """Joined noun phrases: the cat and the dog."""

    first: NounPhrase
    second: NounPhrase


@dataclass(frozen=True, slots=True)
class PrepositionalPhrase:
    """Preposition and noun phrase: in front of the house."""

    preposition: Phrase
    phrase: NounPhrase


@dataclass(frozen=True, slots=True)
class Description:
    """Predicative adjective, after be: very old."""

    adjective: Adjective
    degree: Phrase | None


Subject = NounPhrase | Coordination | Pronoun


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb with its arguments and adverbials; `verb` is be if there is a description."""

    verb: Verb
    tense: Tense
    polarity: Polarity
    subject: Subject | None = None
    """None in a relative clause whose noun is the subject."""
    passive: bool = False
    frequency: Phrase | None = None
    description: Description | None = None
    object: NounPhrase | Pronoun | None = None
    recipient: PrepositionalPhrase | None = None
    """Receiver of something, or agent in the passive."""
    manner: Phrase | None = None
    place: PrepositionalPhrase | None = None
    time: Phrase | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    clause: Clause


@dataclass(frozen=True, slots=True)
class Question:
    """Question: Did the cat sleep? Where did the cat sleep? Without inversion if it asks for who."""

    clause: Clause
    about: Phrase | None = None


@dataclass(frozen=True, slots=True)
class Compound:
    """Two clauses joined by a conjunction: He slept because he was tired."""

    first: Clause
    conjunction: Phrase
    second: Clause


Sentence = Statement | Question | Compound
Combination = tuple[Adjective, Noun] | tuple[Verb, Tense, Polarity]


def combinations(sentence: Sentence) -> Iterator[Combination]:
    """Yield each adjective with its noun, and each verb except `be` with its tense and polarity."""
    if isinstance(sentence, Compound):
        yield from in_clause(sentence.first)
        yield from in_clause(sentence.second)
    else:
        yield from in_clause(sentence.clause)


def in_clause(clause: Clause) -> Iterator[Combination]:
    if clause.description is None:
        yield clause.verb, clause.tense, clause.polarity
    for part in (clause.subject, clause.object, clause.recipient, clause.place):
        for phrase in noun_phrases(part):
            yield from in_noun_phrase(phrase)
    if clause.description is not None:
        for phrase in noun_phrases(clause.subject):
            yield clause.description.adjective, phrase.noun


def in_noun_phrase(phrase: NounPhrase) -> Iterator[Combination]:
    for adjective in phrase.adjectives:
        yield adjective, phrase.noun
    if phrase.complement is not None:
        yield from in_noun_phrase(phrase.complement.phrase)
    if phrase.relative is not None:
        yield from in_clause(phrase.relative)


def noun_phrases(part: Subject | PrepositionalPhrase | None) -> tuple[NounPhrase, ...]:
    if isinstance(part, NounPhrase):
        return (part,)
    if isinstance(part, PrepositionalPhrase):
        return (part.phrase,)
    if isinstance(part, Coordination):
        return part.first, part.second
    return ()
