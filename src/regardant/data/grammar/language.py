"""Space of the sentences of the grammar, which can be counted, drawn from and searched.

The weights aim at sentences of eight to eleven English words in which every word of the lexicon is frequent.
"""

from functools import cache
from typing import Any

from regardant.data.grammar.lexicon import (
    BE,
    SUBJECT_PRONOUNS,
    WHO,
    Adjective,
    Phrase,
    Polarity,
    Tense,
    Verb,
    adjectives,
    nouns,
    phrase,
    phrases,
    verbs,
)
from regardant.data.grammar.noun_phrases import (
    after,
    coordinations,
    extended,
    extended_noun,
    noun_phrases,
    objects,
    places,
    plain,
    subjects,
)
from regardant.data.grammar.spaces import Choice, Product, Space, Union, only
from regardant.data.grammar.syntax import Clause, Compound, Description, Question, Sentence, Statement, Subject

YEARS = range(1950, 2022, 3)
TENSES = {Tense.PRESENT: 3, Tense.PAST: 5, Tense.FUTURE: 2}
POLARITIES = {Polarity.AFFIRMATIVE: 14, Polarity.NOT: 4, Polarity.NEVER: 2}


@cache
def language() -> Space[Sentence]:
    everything = verbs().values()
    spaces: tuple[Space[Sentence], ...] = (
        Product(Statement, clause=Union([actions(verb) for verb in everything])),
        Product(Statement, clause=Union([passives(verb, tuple(Polarity)) for verb in everything if has_passive(verb)])),
        Product(Statement, clause=descriptions(tuple(Tense), (Polarity.AFFIRMATIVE, Polarity.NOT), brief=False)),
        questions(),
        Union([compounds(tense) for tense in Tense], tuple(TENSES.values())),
    )
    return Union(spaces, (9, 3, 3, 4, 2))


def count() -> int:
    """Count the sentence pairs of the language."""
    return language().size


def optional(space: Space[Any], chance: float) -> Space[Any]:
    return Union((only(None), space), (1 - chance, chance))


@cache
def times(tense: Tense) -> Space[Phrase]:
    months = phrases("month")
    weekdays = Choice(tuple(phrases("weekday").values()))
    fixed = Choice(tuple(phrases(tense.name.lower()).values()))
    if tense is Tense.PRESENT:
        return fixed
    if tense is Tense.FUTURE:
        in_month = [phrase(f"in {name}", f"en {month.french[0][0]}", "0-0 1-1") for name, month in months.items()]
        return Union((fixed, weekdays, Choice(in_month)), (2, 1, 1))
    in_year = [phrase(f"in {year}", f"en {year}", "0-0 1-1") for year in YEARS]
    in_both = [
        phrase(f"in {name} {year}", f"en {month.french[0][0]} {year}", "0-0 1-1 2-2")
        for name, month in months.items()
        for year in YEARS
    ]
    return Union((fixed, weekdays, Choice(in_year), Choice(in_both)), (2, 1, 1, 3))


def has_passive(verb: Verb) -> bool:
    return bool(verb.object) and verb.direct and not verb.stative


def place(verb: Verb, chance: float) -> Space[Any]:
    """Return the places of a verb: required if the verb needs one, with probability `chance` if the verb allows one."""
    if not verb.places or not (chance or verb.place_needed):
        return only(None)
    somewhere = Union([Union(places(kind)) for kind in sorted(verb.places)])
    return somewhere if verb.place_needed else optional(somewhere, chance)


def recipient(verb: Verb) -> Space[Any]:
    return after(phrases("recipient")["to"], verb.recipient) if verb.recipient else only(None)


def roles(polarity: Polarity) -> tuple[str, str]:
    """Return the roles of subject and object."""
    return ("subject", "object") if polarity is Polarity.AFFIRMATIVE else ("denied", "negated")


def actions(verb: Verb) -> Space[Clause]:
    """Return active statements. Those with "never" have no time; stative verbs have neither "never" nor a time."""
    spaces, weights = [], []
    for tense, tense_weight in TENSES.items():
        for polarity in verb.polarities:
            spaces.append(shapes(verb, tense, polarity))
            weights.append(tense_weight * POLARITIES[polarity])
    return Union(spaces, weights)


def shapes(verb: Verb, tense: Tense, polarity: Polarity) -> Space[Clause]:
    """Return clauses in which one part is long: the subject, the object, or the parts after them."""
    of_subject, of_object = roles(polarity)
    timeless = verb.stative or polarity is Polarity.NEVER
    when = only(None) if timeless else optional(times(tense), 0.3)
    manners = [phrases("manner")[manner] for manner in sorted(verb.manner)]
    core: dict[str, Space[Any]] = {
        "verb": only(verb),
        "tense": only(tense),
        "polarity": only(polarity),
        "recipient": recipient(verb),
    }
    subject, short_object = subjects(verb.subject, of_subject, 2), objects(verb, of_object, 1)
    long_end = Product(
        Clause,
        **core,
        subject=subject,
        object=short_object,
        manner=optional(Choice(manners), 0.2) if manners else only(None),
        place=place(verb, 0.4),
        time=when,
    )
    spaces, weights = [long_end], [6]
    if (long_subject := extended(verb.subject)) is not None:
        fields = {"subject": long_subject, "object": short_object}
        spaces.append(Product(Clause, **core, **fields, place=place(verb, 0), time=when))
        weights.append(1)
    if (long_object := extended(verb.object)) is not None:
        fields = {"subject": subjects(verb.subject, of_subject, 1), "object": long_object}
        spaces.append(Product(Clause, **core, **fields, place=place(verb, 0), time=when))
        weights.append(2)
    if polarity is Polarity.AFFIRMATIVE and not verb.stative:
        often = Choice(tuple(phrases("frequency").values()))
        fields = {"subject": subject, "object": short_object}
        spaces.append(Product(Clause, **core, **fields, frequency=often, place=place(verb, 0.4)))
        weights.append(1)
    return Union(spaces, weights)


def passives(verb: Verb, polarities: tuple[Polarity, ...]) -> Space[Clause]:
    spaces, weights = [], []
    by = after(phrases("agent")["by"], verb.subject)
    for tense, tense_weight in TENSES.items():
        for polarity in polarities:
            undergoing = [noun_phrases(verb.object, roles(polarity)[0], 2)]
            if (long_subject := extended(verb.object)) is not None:
                undergoing.append(long_subject)
            spaces.append(
                Product(
                    Clause,
                    verb=only(verb),
                    tense=only(tense),
                    polarity=only(polarity),
                    subject=Union(undergoing, (2, 1)[: len(undergoing)]),
                    passive=only(True),
                    recipient=optional(by, 0.4),
                    time=only(None) if polarity is Polarity.NEVER else optional(times(tense), 0.5),
                )
            )
            weights.append(tense_weight * POLARITIES[polarity])
    return Union(spaces, weights)


@cache
def descriptions(tenses: tuple[Tense, ...], polarities: tuple[Polarity, ...], *, brief: bool) -> Space[Clause]:
    """Return clauses such as "the house was very old". An adjective of the subject could only repeat or contradict."""
    spaces, weights = [], []
    of_people = [adjective for adjective in adjectives().values() if "person" in adjective.nouns]
    for polarity in polarities:
        fields: dict[str, Space[Any]] = {
            "verb": only(BE),
            "tense": Choice(tenses),
            "polarity": only(polarity),
        }
        role = roles(polarity)[0]
        for noun in nouns().values():
            fitting_it = [one for one in adjectives().values() if one.predicative and noun.fits(one.nouns)]
            if not fitting_it or "title" in noun.tags:
                continue
            subject: Space[Subject] = plain(noun, role, 0)
            longer = extended_noun(noun, 0)
            if longer is not None and not brief:
                subject = Union((subject, longer))
            spaces.append(Product(Clause, **fields, subject=subject, description=qualities(fitting_it)))
            weights.append(POLARITIES[polarity])
        names = noun_phrases(frozenset({"name"}), role, 0)
        people: Space[Subject] = Union((Choice(SUBJECT_PRONOUNS), names, coordinations()))
        spaces.append(Product(Clause, **fields, subject=people, description=qualities(of_people)))
        weights.append(30 * POLARITIES[polarity])  # a fifth of all
    return Union(spaces, weights)


def qualities(choices: list[Adjective]) -> Space[Description]:
    degrees = Choice(tuple(phrases("degree").values()))
    gradable = [adjective for adjective in choices if adjective.gradable]
    others = [adjective for adjective in choices if not adjective.gradable]
    spaces, weights = [], []
    if gradable:
        spaces.append(Product(Description, adjective=Choice(gradable), degree=optional(degrees, 0.4)))
        weights.append(len(gradable))
    if others:
        spaces.append(Product(Description, adjective=Choice(others), degree=only(None)))
        weights.append(len(others))
    return Union(spaces, weights)


def questions() -> Space[Sentence]:
    """Return questions without a negation."""
    everything = list(verbs().values())
    affirmative = (Polarity.AFFIRMATIVE,)
    passive = Union([passives(verb, affirmative) for verb in everything if has_passive(verb)])
    spaces: list[Space[Sentence]] = [
        Product(Question, clause=Union([asked(verb, None) for verb in everything])),
        Product(Question, clause=descriptions(tuple(Tense), affirmative, brief=True)),
        Product(Question, clause=passive),
        Product(Question, clause=Union([asked(verb, "who") for verb in everything if "person" in verb.subject])),
    ]
    for word, about in phrases("about").items():
        able = [verb for verb in everything if can_ask(verb, word)]
        spaces.append(Product(Question, clause=Union([asked(verb, word) for verb in able]), about=only(about)))
    return Union(spaces, (4, 2, 1, 2, 1, 1, 1, 1))


def can_ask(verb: Verb, word: str) -> bool:
    able = {"where": bool(verb.places), "when": not verb.stative, "why": True}
    return able.get(word, bool(verb.object) and verb.direct)


def asked(verb: Verb, word: str | None) -> Space[Clause]:
    """Return the clauses of questions with this question word; None: yes-no questions."""
    timed = word is None and not verb.stative
    return Union(
        [
            Product(
                Clause,
                verb=only(verb),
                tense=only(tense),
                polarity=only(Polarity.AFFIRMATIVE),
                subject=only(WHO) if word == "who" else subjects(verb.subject, "subject", 1),
                object=only(None) if word == "what" else objects(verb, "object", 1),
                recipient=recipient(verb),
                place=only(None) if word == "where" else place(verb, 0.3),
                time=optional(times(tense), 0.3) if timed else only(None),
            )
            for tense in TENSES
        ],
        tuple(TENSES.values()),
    )


def compounds(tense: Tense) -> Space[Compound]:
    """Return sentences of two short clauses in one tense."""
    polarities = (Polarity.AFFIRMATIVE, Polarity.NOT)
    able = [verb for verb in verbs().values() if not verb.recipient]
    doing = Union([short(verb, tense, polarity) for verb in able for polarity in polarities], (4, 1) * len(able))
    clauses = Union((doing, descriptions((tense,), polarities, brief=True)), (3, 1))
    conjunctions = Choice(tuple(phrases("conjunction").values()))
    return Product(Compound, first=clauses, conjunction=conjunctions, second=clauses)


def short(verb: Verb, tense: Tense, polarity: Polarity) -> Space[Clause]:
    of_subject, of_object = roles(polarity)
    return Product(
        Clause,
        verb=only(verb),
        tense=only(tense),
        polarity=only(polarity),
        subject=subjects(verb.subject, of_subject, 0),
        object=objects(verb, of_object, 0),
        place=place(verb, 0),
    )
