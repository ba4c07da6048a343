from regardant.data.grammar.lexicon import BE, Polarity, Tense, adjectives, determiners, nouns, phrases, verbs
from regardant.data.grammar.syntax import (
    Clause,
    Compound,
    Coordination,
    Description,
    NounPhrase,
    PrepositionalPhrase,
    Statement,
    combinations,
)


def phrase(adjective: str, noun: str, **fields: object) -> NounPhrase:
    return NounPhrase(nouns()[noun], False, determiners()[0], (adjectives()[adjective],), **fields)


def says(verb: str, **fields: object) -> Clause:
    return Clause(verbs()[verb], Tense.PAST, Polarity.NOT, **fields)


def of_adjective(adjective: str, noun: str) -> object:
    return adjectives()[adjective], nouns()[noun]


def of_verb(verb: str) -> object:
    return verbs()[verb], Tense.PAST, Polarity.NOT


def test_combinations_are_found_in_every_part_of_a_clause():
    clause = says(
        "give",
        subject=phrase("old", "man"),
        object=phrase("red", "book"),
        recipient=PrepositionalPhrase(phrases("recipient")["to"], phrase("young", "queen")),
        place=PrepositionalPhrase(phrases("inside")["in"], phrase("big", "house")),
    )
    assert set(combinations(Statement(clause))) == {
        of_verb("give"),
        of_adjective("old", "man"),
        of_adjective("red", "book"),
        of_adjective("young", "queen"),
        of_adjective("big", "house"),
    }


def test_combinations_are_found_below_a_noun():
    bought = says("buy", subject=phrase("rich", "king"))
    house = phrase("big", "house", relative=bought)
    door = phrase("green", "door", complement=PrepositionalPhrase(phrases("owner")["of"], house))
    assert set(combinations(Statement(says("open", subject=door)))) == {
        of_verb("open"),
        of_verb("buy"),
        of_adjective("green", "door"),
        of_adjective("big", "house"),
        of_adjective("rich", "king"),
    }


def test_a_description_combines_with_each_noun_and_be_does_not_count():
    both = Coordination(phrase("old", "man"), phrase("young", "queen"))
    tired = Description(adjectives()["tired"], None)
    described = Clause(BE, Tense.PAST, Polarity.AFFIRMATIVE, both, description=tired)
    joined = Compound(says("leave", subject=both), phrases("conjunction")["and"], described)
    assert set(combinations(joined)) == {
        of_verb("leave"),
        of_adjective("old", "man"),
        of_adjective("young", "queen"),
        of_adjective("tired", "man"),
        of_adjective("tired", "queen"),
    }
