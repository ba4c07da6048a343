from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.grammar.language import language
from regardant.data.grammar.lecture import LECTURE_TREES
from regardant.data.words import words


def test_both_sentences_are_of_the_language():
    assert all(tree in language() for tree in LECTURE_TREES)


def test_both_sentences_read_as_in_the_lectures():
    assert [(pair.source, pair.target) for pair in LECTURE_SENTENCES] == [
        ("The cat sat on the mat.", "Le chat s'est assis sur le tapis."),
        (
            "The agreement on the European Economic Area was signed in August 1992.",
            "L'accord sur la zone économique européenne a été signé en août 1992.",
        ),
    ]


def test_the_area_is_linked_in_reverse():
    pair = LECTURE_SENTENCES[1]
    source, target = words(pair.source), words(pair.target)
    links = [(source[i].text, target[j].text) for i, j in pair.links]
    assert links == [
        ("The", "L'"), ("agreement", "accord"), ("on", "sur"), ("the", "la"), ("European", "européenne"),
        ("Economic", "économique"), ("Area", "zone"), ("was", "a"), ("was", "été"), ("signed", "signé"),
        ("in", "en"), ("August", "août"), ("1992", "1992"), (".", "."),
    ]  # fmt: skip
