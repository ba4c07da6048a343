"""French inflection by rule; the tables spell out irregular forms.

Forms that agree with a noun are ordered masculine, feminine, masculine plural, feminine plural.
Forms of a verb are ordered je, il, nous, vous, ils.
"""

VOWELS = "aeiouhâàéèêëîïôöûùœ"
"""First letters of French words before which the previous word elides. An aspirated h is marked in the tables."""

FEMININE = (
    ("e", "e"),
    ("eux", "euse"),
    ("f", "ve"),
    ("en", "enne"),
    ("on", "onne"),
    ("el", "elle"),
    ("er", "ère"),
)
"""Endings of an adjective and of its feminine; any other adds an e."""

PLURAL = (("s", "s"), ("x", "x"), ("z", "z"), ("eau", "eaux"), ("al", "aux"))
"""Endings of a noun or adjective and of its plural; any other adds an s."""

PRESENT = {
    "er": ("e", "e", "ons", "ez", "ent"),
    "ir": ("is", "it", "issons", "issez", "issent"),
    "re": ("s", "", "ons", "ez", "ent"),
}
PARTICIPLE = {"er": "é", "ir": "i", "re": "u"}
FUTURE = ("ai", "a", "ons", "ez", "ont")
IMPERFECT = ("ais", "ait", "ions", "iez", "aient")


def plural(word: str) -> str:
    return change_ending(word, PLURAL, "s")


def feminine(adjective: str) -> str:
    return change_ending(adjective, FEMININE, "e")


def change_ending(word: str, endings: tuple[tuple[str, str], ...], otherwise: str) -> str:
    for ending, changed in endings:
        if word.endswith(ending):
            return word.removesuffix(ending) + changed
    return word + otherwise


def agreeing(masculine: str, feminine: str) -> tuple[str, ...]:
    """Return the four forms of an adjective or participle; `beau|bel` has its second form in the singular alone."""
    return masculine, feminine, plural(masculine.split("|")[0]), plural(feminine)


def present(infinitive: str) -> tuple[str, ...]:
    stem, group = infinitive[:-2], infinitive[-2:]
    je, il, nous, vous, ils = (stem + ending for ending in PRESENT[group])
    if infinitive.endswith("ger"):
        nous = f"{stem}eons"
    elif infinitive.endswith("cer"):
        nous = f"{stem[:-1]}çons"
    return je, il, nous, vous, ils


def participle(infinitive: str) -> str:
    return infinitive[:-2] + PARTICIPLE[infinitive[-2:]]


def future(stem: str) -> tuple[str, ...]:
    return tuple(stem + ending for ending in FUTURE)


def imperfect(nous: str) -> tuple[str, ...]:
    """Return the imperfect, made from the first person plural of the present: connaissons, connaissais."""
    return tuple(nous.removesuffix("ons") + ending for ending in IMPERFECT)
