"""Noun phrases of the grammar, as spaces.

A role says which determiners fit: subject, denied (the subject of a negated verb), object, negated (the object of one:
pas de), place (after a preposition) and head (before a complement or a relative clause).
"""

from functools import cache
from typing import Any

from regardant.data.grammar.lexicon import (
    OBJECT_PRONOUNS,
    SUBJECT_PRONOUNS,
    Adjective,
    Determiner,
    Noun,
    Phrase,
    Polarity,
    Tense,
    Verb,
    adjectives,
    determiners,
    nouns,
    phrases,
    verbs,
)
from regardant.data.grammar.spaces import Choice, Product, Space, Union, only
from regardant.data.grammar.syntax import Clause, Coordination, NounPhrase, PrepositionalPhrase, Subject

Classes = frozenset[str]
PERSON: Classes = frozenset({"person"})
NAMED: Classes = frozenset({"person", "name"})
PRONOUN_WEIGHTS = (3, 3, 1, 1, 3, 1)  # I, you and we have verb forms that nothing else has


def fitting(classes: Classes) -> list[Noun]:
    return [noun for noun in nouns().values() if noun.fits(classes)]


@cache
def articles(kind: str, role: str) -> tuple[Determiner, ...]:
    return tuple(one for one in determiners() if one.kind == kind and role in one.roles)


@cache
def noun_phrases(classes: Classes, role: str, most_adjectives: int) -> Space[NounPhrase]:
    """Return noun phrases of these classes, without complement or relative clause."""
    able = [noun for noun in fitting(classes) if articles(noun.kinds[0], role)]
    return Union([plain(noun, role, most_adjectives) for noun in able])


@cache
def plain(noun: Noun, role: str, most_adjectives: int) -> Space[NounPhrase]:
    return around(noun, role, adjective_rows(noun, most_adjectives))


def around(noun: Noun, role: str, rows: Space[tuple[Adjective, ...]], **fields: Space[Any]) -> Space[NounPhrase]:
    """Return phrases of one noun in singular and plural, with each determiner that fits."""
    spaces, weights = [], []
    for kind in noun.kinds:
        choices = articles(kind, role)
        plural = kind in ("plural", "countries")
        spaces.append(
            Product(
                NounPhrase,
                noun=only(noun),
                plural=only(plural),
                determiner=Choice(choices, [choice.weight for choice in choices]),
                adjectives=rows,
                **fields,
            )
        )
        weights.append(1 if plural else 2)
    return Union(spaces, weights)


@cache
def adjective_rows(noun: Noun, most: int) -> Space[tuple[Adjective, ...]]:
    """Return sequences of adjectives for a noun. Titles (the European Council) have at least one."""
    singles = [adjective for adjective in adjectives().values() if noun.fits(adjective.nouns)]
    pairs = [(first, second) for first in singles for second in singles if may_stand_in_row(first, second)]
    spaces: list[Space[tuple[Adjective, ...]]] = []
    weights = []
    if "title" not in noun.tags:
        spaces.append(only(()))
        weights.append(5)
    if (singles and most >= 1) or "title" in noun.tags:
        spaces.append(Choice([(adjective,) for adjective in singles]))
        weights.append(4)
    if pairs and most >= 2:
        spaces.append(Choice(pairs))
        weights.append(3)
    return Union(spaces, weights)


def may_stand_in_row(first: Adjective, second: Adjective) -> bool:
    """Return whether two adjectives may follow each other in English order. Of two that precede the French noun,
    neither may be a quality (rank 3): une belle petite maison."""
    both_before = first.before and second.before
    return first.rank < second.rank and not (both_before and 3 in (first.rank, second.rank))


@cache
def subjects(classes: Classes, role: str, most_adjectives: int) -> Space[Subject]:
    """Return noun phrases; for people also pronouns, names and pairs."""
    spaces: list[Space[Subject]] = [noun_phrases(classes, role, most_adjectives)]
    weights = [6]
    if "person" in classes:
        spaces += [
            Choice(SUBJECT_PRONOUNS, PRONOUN_WEIGHTS),
            noun_phrases(frozenset({"name"}), role, 0),
            coordinations(),
        ]
        weights += [4, 1, 1]
    return Union(spaces, weights)


@cache
def coordinations() -> Space[Coordination]:
    """Return pairs of two different people."""
    people = fitting(NAMED)
    return Union(
        [
            Product(
                Coordination,
                first=singular(first),
                second=Union([singular(second) for second in people if second is not first]),
            )
            for first in people
        ]
    )


@cache
def singular(noun: Noun) -> Space[NounPhrase]:
    """Return phrases such as "the king" or "Anna"."""
    the = Choice(articles(noun.kinds[0], "head"))
    return Product(NounPhrase, noun=only(noun), plural=only(False), determiner=the)


@cache
def objects(verb: Verb, role: str, most_adjectives: int) -> Space[Any]:
    """Return noun phrases; for people also pronouns. A verb without an object has none."""
    if not verb.object:
        return only(None)
    phrases = noun_phrases(verb.object, role, most_adjectives)
    if "person" in verb.object and not verb.french_preposition:
        return Union((phrases, Choice(OBJECT_PRONOUNS)), (5, 1))
    return phrases


@cache
def extended(classes: Classes) -> Space[NounPhrase] | None:
    """Return the nouns of these classes with a complement or a relative clause. None if there are none."""
    spaces = [space for noun in fitting(classes) if (space := extended_noun(noun, 1)) is not None]
    return Union(spaces) if spaces else None


@cache
def extended_noun(noun: Noun, most_adjectives: int) -> Space[NounPhrase] | None:
    if "singular" not in noun.kinds:
        return None
    rows = adjective_rows(noun, most_adjectives)
    with_complement = [around(noun, "head", rows, complement=space) for space in complements(noun)]
    with_relative = [around(noun, "head", rows, relative=space) for space in relatives(noun)]
    if not (with_complement or with_relative):
        return None
    return Union(with_complement + with_relative, [2] * len(with_complement) + [1] * len(with_relative))


def complements(noun: Noun) -> list[Space[PrepositionalPhrase]]:
    of, on = phrases("owner")["of"], phrases("topic")["on"]
    spaces: list[Space[PrepositionalPhrase]] = []
    if "part" in noun.tags:
        spaces.append(after(of, frozenset({"building"})))
    if "kin" in noun.tags:
        spaces.append(after(of, PERSON))
    if "crown" in noun.tags:
        spaces.append(countries(feminine=of, masculine=of))
    if "about" in noun.tags:
        spaces += [after(on, frozenset({"topic"})), after(on, frozenset({"title"}), most_adjectives=2)]
    return spaces


@cache
def after(preposition: Phrase, classes: Classes, most_adjectives: int = 1) -> Space[PrepositionalPhrase]:
    return Product(
        PrepositionalPhrase,
        preposition=only(preposition),
        phrase=noun_phrases(classes, "place", most_adjectives),
    )


@cache
def countries(feminine: Phrase, masculine: Phrase) -> Space[PrepositionalPhrase]:
    """Return "en France", "d'Espagne" without an article; "au Japon", "des Pays-Bas" with one."""
    no_article = Choice(articles("name", "head"))
    named = fitting(frozenset({"country"}))
    bare = [noun for noun in named if noun.feminine and "countries" not in noun.tags]
    others = [noun for noun in named if noun not in bare]
    spaces = (
        Product(
            PrepositionalPhrase,
            preposition=only(feminine),
            phrase=Product(NounPhrase, noun=Choice(bare), plural=only(False), determiner=no_article),
        ),
        Product(
            PrepositionalPhrase,
            preposition=only(masculine),
            phrase=Union([plain(noun, "place", 0) for noun in others]),
        ),
    )
    return Union(spaces)


def places(kind: str) -> list[Space[PrepositionalPhrase]]:
    """Return phrases such as "in the garden", "in Paris" or "to Japan"."""
    if kind == "country":
        return [countries(feminine=phrases("country")["in"], masculine=phrases("city")["in"])]
    if kind == "country_goal":
        return [countries(feminine=phrases("country_goal")["to"], masculine=phrases("goal")["to"])]
    return [after(preposition, frozenset({kind.removesuffix("_goal")})) for preposition in phrases(kind).values()]


def relatives(noun: Noun) -> list[Space[Clause]]:
    """Return clauses such as "who helped the king" or "that the king bought"."""
    as_subject = [relative_to_subject(verb) for verb in verbs().values() if noun.fits(verb.subject)]
    as_object = [
        relative_to_object(verb)
        for verb in verbs().values()
        if noun.fits(verb.object) and verb.direct and not noun.fits(PERSON)
    ]
    spaces = [space for space in as_subject if space is not None]
    return [Union(group) for group in (spaces, as_object) if group]


@cache
def relative_to_subject(verb: Verb) -> Space[Clause] | None:
    if verb.place_needed or verb.recipient:
        return None
    return Union(
        [
            Product(
                Clause,
                verb=only(verb),
                tense=Choice(tuple(Tense)),
                polarity=only(polarity),
                object=objects(verb, role, 0),
            )
            for polarity, role in ((Polarity.AFFIRMATIVE, "object"), (Polarity.NOT, "negated"))
        ],
        (4, 1),
    )


@cache
def relative_to_object(verb: Verb) -> Space[Clause]:
    return Product(
        Clause,
        verb=only(verb),
        tense=Choice(tuple(Tense)),
        polarity=Choice((Polarity.AFFIRMATIVE, Polarity.NOT), (4, 1)),
        subject=subjects(verb.subject, "denied", 0),
    )
