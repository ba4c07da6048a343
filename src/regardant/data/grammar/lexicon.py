"""The words of the language, read from the tables beside this file.

Two marks in the tables are removed when text is written. `le|l'` is a word with a second form, which is used before a
vowel sound. `*héros` is a word whose first sound does not match its first letter: an aspirated h in French,
*European (a consonant) and *honest (a vowel) in English. Where a table has a plural, a feminine or a verb form, it
is one that the rules of `english` and `french` would get wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources

from regardant.data.grammar import english, french


class Tense(IntEnum):
    PRESENT = 0
    PAST = 1
    FUTURE = 2


class Polarity(IntEnum):
    AFFIRMATIVE = 0
    NOT = 1
    NEVER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    english: tuple[str, str]
    """Singular and plural."""
    french: tuple[str, str]
    feminine: bool
    tags: frozenset[str]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of determiners that can precede the noun. Countable nouns have two: singular and plural."""
        if "countries" in self.tags:
            return ("countries",)
        if "single" in self.tags:
            return ("singular",)
        uncounted = self.tags & {"mass", "title", "topic", "name", "city", "country"}
        return tuple(uncounted) or ("singular", "plural")

    def fits(self, classes: frozenset[str]) -> bool:
        """Return whether one of the classes is a tag of this noun, or the noun itself."""
        return self.english[0] in classes or not self.tags.isdisjoint(classes)


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    english: str
    french: tuple[str, ...]
    """Masculine, feminine, masculine plural, feminine plural."""
    before: bool
    """True if the adjective precedes the noun in French, like those of beauty, age, goodness and size."""
    rank: int
    """Position in a sequence of English adjectives; see the table's first line."""
    predicative: bool
    nouns: frozenset[str]

    @property
    def gradable(self) -> bool:
        return self.rank <= 4


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    base: str
    third: str
    past: str
    participle: str
    french: dict[Tense, tuple[str, ...]]
    """Forms of the simple tenses for je, il, nous, vous, ils. The past is compound if it is missing here."""
    french_participle: tuple[str, ...]
    with_etre: bool
    reflexive: bool
    subject: frozenset[str] = frozenset()
    object: frozenset[str] = frozenset()
    english_particle: str = ""
    french_preposition: str = ""
    manner: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    place_needed: bool = False
    recipient: frozenset[str] = frozenset()

    @property
    def direct(self) -> bool:
        """True if no word stands between the verb and its object, in both languages."""
        return not (self.english_particle or self.french_preposition)

    @property
    def stative(self) -> bool:
        """True if the verb describes a state, so that its French past is the imperfect: he had, il avait."""
        return Tense.PAST in self.french

    @property
    def polarities(self) -> tuple[Polarity, ...]:
        """Polarities of the verb. A stative verb does not go with "never"."""
        return (Polarity.AFFIRMATIVE, Polarity.NOT) if self.stative else tuple(Polarity)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A fixed phrase. Bit i stands for English word i; a French word has the bits of all words it renders."""

    english: tuple[str, ...]
    french: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    kind: str
    forms: tuple[Phrase, Phrase]
    """Forms before a masculine and a feminine noun."""
    roles: frozenset[str]
    weight: float

    @property
    def partitive(self) -> bool:
        """True if the determiner becomes de before an adjective: des maisons, de vieilles maisons."""
        return self.forms[0].french[:1] == (("des", 1),)


@dataclass(frozen=True, slots=True, eq=False)
class Pronoun:
    english: str
    french: str
    person: int
    """Index into a French verb's forms: je, il, nous, vous, ils."""
    agreement: int
    """Index into an adjective's or participle's forms."""


# Gender and number that English leaves open are fixed: I, we, you and they are masculine, you is one person.
SUBJECT_PRONOUNS = (
    Pronoun("I", "je|j'", 0, 0),
    Pronoun("you", "vous", 3, 0),
    Pronoun("he", "il", 1, 0),
    Pronoun("she", "elle", 1, 1),
    Pronoun("we", "nous", 2, 2),
    Pronoun("they", "ils", 4, 2),
)
OBJECT_PRONOUNS = (
    Pronoun("him", "le|l'", 1, 0),
    Pronoun("her", "la|l'", 1, 1),
    Pronoun("them", "les", 4, 2),
)
WHO = Pronoun("who", "qui", 1, 0)
REFLEXIVE = ("me|m'", "se|s'", "nous", "vous", "se|s'")

AVOIR_PRESENT = ("ai", "a", "avons", "avez", "ont")
BE = Verb(
    base="be",
    third="is",
    past="was",
    participle="been",
    french={
        Tense.PRESENT: ("suis", "est", "sommes", "êtes", "sont"),
        Tense.PAST: french.imperfect("étons"),
        Tense.FUTURE: french.future("ser"),
    },
    french_participle=("été",) * 4,
    with_etre=False,
    reflexive=False,
)
ENGLISH_BE = {
    Tense.PRESENT: ("am", "is", "are", "are", "are"),
    Tense.PAST: ("was", "was", "were", "were", "were"),
}


def rows(table: str) -> Iterator[dict[str, str]]:
    text = resources.files(__package__).joinpath(f"{table}.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    for line in lines[1:]:
        yield dict(zip(lines[0], ("" if cell == "-" else cell for cell in line), strict=True))


def with_plural(cell: str, rule: Callable[[str], str]) -> tuple[str, str]:
    singular, _, irregular = cell.partition("/")
    return singular, irregular or rule(singular)


@cache
def nouns() -> dict[str, Noun]:
    """Return every noun by its English singular."""
    read = (
        Noun(
            english=with_plural(row["english"], english.plural),
            french=with_plural(row["french"], french.plural),
            feminine=row["gender"] == "f",
            tags=frozenset(row["tags"].split()),
        )
        for row in rows("nouns")
    )
    return {noun.english[0]: noun for noun in read}


@cache
def adjectives() -> dict[str, Adjective]:
    """Return every adjective by its English form."""
    read = {}
    for row in rows("adjectives"):
        masculine = row["french"]
        feminine = row["feminine"] or french.feminine(masculine)
        forms = (masculine,) * 4 if feminine == "invariable" else french.agreeing(masculine, feminine)
        read[row["english"].strip("*")] = Adjective(
            english=row["english"],
            french=forms,
            before=row["position"] == "before",
            rank=int(row["rank"]),
            predicative=row["use"] == "both",
            nouns=frozenset(row["nouns"].split()),
        )
    return read


@cache
def verbs() -> dict[str, Verb]:
    """Return every verb except `be`, by its English base form."""
    return {verb.base: verb for verb in map(read_verb, rows("verbs"))}


def read_verb(row: dict[str, str]) -> Verb:
    base, *irregular = row["english"].split()
    past, participle, third = [*irregular, *[""] * 3][:3]
    infinitive = row["french"].removeprefix("se ").removeprefix("s'")
    forms = row["irregular"].split()
    present = tuple(forms[:5]) or french.present(infinitive)
    simple = {
        Tense.PRESENT: present,
        Tense.FUTURE: french.future(forms[6] if len(forms) > 6 else infinitive.removesuffix("e")),
    }
    if row["past"] == "imparfait":
        simple[Tense.PAST] = french.imperfect(present[2])
    masculine = forms[5] if len(forms) > 5 else french.participle(infinitive)
    particle, _, preposition = row["particle"].partition("/")
    return Verb(
        base=base,
        third=third or english.third_person(base),
        past=past or english.past(base),
        participle=participle or english.past(base),
        french=simple,
        french_participle=french.agreeing(masculine, f"{masculine}e"),
        with_etre=row["past"] == "être",
        reflexive=infinitive != row["french"],
        subject=frozenset(row["subject"].split()),
        object=frozenset(row["object"].split()),
        english_particle=particle.strip("-"),
        french_preposition=preposition.strip("-"),
        manner=frozenset(row["manner"].split()),
        places=frozenset(row["places"].removeprefix("!").split()),
        place_needed=row["places"].startswith("!"),
        recipient=frozenset(row["recipient"].split()),
    )


@cache
def phrases(kind: str) -> dict[str, Phrase]:
    """Return the fixed phrases of one kind, by their English words."""
    return {
        row["english"]: phrase(row["english"], row["french"], row["links"])
        for row in rows("phrases")
        if row["kind"] == kind
    }


@cache
def determiners() -> tuple[Determiner, ...]:
    return tuple(
        Determiner(
            kind=row["kind"],
            forms=(
                phrase(row["english"], row["masculine"], row["links"]),
                phrase(row["english"], row["feminine"], row["links"]),
            ),
            roles=frozenset(row["roles"].split()),
            weight=float(row["weight"]),
        )
        for row in rows("determiners")
    )


def phrase(english_words: str, french_words: str, links: str) -> Phrase:
    bits = [0] * len(french_words.split())
    for link in links.split():
        source, target = map(int, link.split("-"))
        bits[target] |= 1 << source
    return Phrase(tuple(english_words.split()), tuple(zip(french_words.split(), bits, strict=True)))
