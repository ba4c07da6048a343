import pytest

from regardant.data.grammar.surface import Marked, english_text, french_text


def marked(words: str) -> list[Marked]:
    return [Marked(word, 1 << place) for place, word in enumerate(words.split())]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("le|l' homme", "L'homme"),
        ("le|l' *héros", "Le héros"),
        ("la|l' *hache", "La hache"),
        ("la|l' île", "L'île"),
        ("le|l' œuf", "L'œuf"),
        ("ce|cet *hibou ne|n' est pas ce|cet oiseau", "Ce hibou n'est pas cet oiseau"),
        ("ma|mon amie", "Mon amie"),
        ("un beau|bel arbre", "Un bel arbre"),
        ("un vieux|vieil *hangar", "Un vieux hangar"),
        ("parce que|qu' ils", "Parce qu'ils"),
        ("je|j' ai", "J'ai"),
    ],
)
def test_elision(words: str, text: str):
    assert french_text(marked(words))[0] == text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("de|d' le|l' chat", "Du chat"),
        ("de|d' le|l' arbre", "De l'arbre"),
        ("de|d' la|l' maison", "De la maison"),
        ("de|d' les arbres", "Des arbres"),
        ("à le|l' *héros", "Au héros"),
        ("à les Pays-Bas", "Aux Pays-Bas"),
        ("à le|l' hôpital", "À l'hôpital"),
    ],
)
def test_contraction(words: str, text: str):
    assert french_text(marked(words))[0] == text


def test_a_contraction_means_what_both_parts_do():
    assert french_text(marked("près de|d' le|l' lac ."))[1] == [0b1, 0b110, 0b1000, 0b10000]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("a|an apple", "An apple"),
        ("a|an cat", "A cat"),
        ("a|an *European cat", "A European cat"),
        ("a|an *honest man", "An honest man"),
    ],
)
def test_english_article(words: str, text: str):
    assert english_text(marked(words))[0] == text


def test_punctuation_is_tight_in_both_languages():
    assert french_text(marked("oui , non ?"))[0] == "Oui, non?"
    assert english_text(marked("yes , no ?"))[0] == "Yes, no?"
