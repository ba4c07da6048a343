"""English inflection by rule; the tables spell out irregular forms."""

VOWELS = "aeiou"


def plural(noun: str) -> str:
    return f"{noun}s"


def third_person(verb: str) -> str:
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if ends_in_consonant_y(verb) else f"{verb}s"


def past(verb: str) -> str:
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if ends_in_consonant_y(verb) else f"{verb}ed"


def ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in VOWELS
