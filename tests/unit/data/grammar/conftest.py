from random import Random

import pytest

from regardant.data.grammar import Pair
from regardant.data.grammar.language import language
from regardant.data.grammar.realisation import realise
from regardant.data.grammar.syntax import Sentence

SENTENCES = 20_000


@pytest.fixture(scope="session")
def sample() -> list[tuple[Sentence, Pair]]:
    random = Random(20)
    trees = (language().draw(random) for _ in range(SENTENCES))
    return [(tree, realise(tree)) for tree in trees]
