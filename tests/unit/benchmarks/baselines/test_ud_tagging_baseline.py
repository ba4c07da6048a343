import pytest

from benchmarks.baselines.ud_tagging import accuracy
from regardant.data.tagged import TaggedText


def text(*pairs):
    words, labels = zip(*(pair.split("/") for pair in pairs), strict=True)
    return TaggedText(list(words), list(labels))


def test_words_get_their_most_frequent_tag_and_unknown_words_that_of_rare_ones():
    train = [text("saw/VERB", "saw/VERB", "saw/NOUN", "cat/NOUN", "dog/NOUN", "red/ADJ"), text("a/DET", "a/DET")]
    test = [text("a/DET", "saw/VERB"), text("saw/NOUN", "bird/NOUN", "blue/ADJ")]
    assert accuracy(train, test) == pytest.approx(3 / 5)
