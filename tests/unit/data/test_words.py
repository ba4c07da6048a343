from hypothesis import given
from hypothesis import strategies as st

from regardant.data.words import words


def split(text: str) -> list[str]:
    return [word.text for word in words(text)]


def test_an_elided_form_ends_at_its_apostrophe():
    assert split("Le chat s'est assis.") == ["Le", "chat", "s'", "est", "assis", "."]
    assert split("L'homme qu'il a vu n'est pas d'ici, lorsqu'on y va.") == (
        ["L'", "homme", "qu'", "il", "a", "vu", "n'", "est", "pas", "d'", "ici", ",", "lorsqu'", "on", "y", "va", "."]
    )


def test_the_typographic_apostrophe_is_as_good():
    assert split("l’homme, aujourd’hui") == ["l’", "homme", ",", "aujourd’hui"]


def test_other_apostrophes_stay_inside_their_word():
    assert split("I don't know O'Brien's aujourd'hui") == ["I", "don't", "know", "O'Brien's", "aujourd'hui"]


def test_a_hyphen_joins_but_a_dash_stands_alone():
    assert split("Est-ce que les Pays-Bas - ou non?") == ["Est-ce", "que", "les", "Pays-Bas", "-", "ou", "non", "?"]


def test_punctuation_stands_alone_but_numbers_keep_theirs():
    assert split("(In 1992, 3.5 or 1,000!)") == ["(", "In", "1992", ",", "3.5", "or", "1,000", "!", ")"]


def test_accents_written_apart_stay_in_the_word():
    assert split("e\u0301te\u0301 l'e\u0301te\u0301") == ["e\u0301te\u0301", "l'", "e\u0301te\u0301"]


def test_text_without_words_has_none():
    assert words(" \t\n") == []


@given(st.text(alphabet=st.sampled_from("aelqu'’-., 1é\u0301?\n") | st.characters(), max_size=60))
def test_words_are_spans_and_leave_only_white_space(text: str):
    end = 0
    for word in words(text):
        assert text[word.start : word.end] == word.text != ""
        assert not text[end : word.start].strip()
        end = word.end
    assert not text[end:].strip()
