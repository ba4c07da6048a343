import random

import pytest
import torch

from regardant.data.treebank import ROOT, ParsedSentence
from regardant.inspection import relation_scores
from regardant.inspection.dependencies import WAYS

TO_GOVERNOR, TO_DEPENDENT = WAYS
SHAPE = (2, 3)


def sentence(governors, relations=None):
    words = [f"w{n}" for n in range(len(governors))]
    return ParsedSentence(words=words, governors=governors, relations=relations or ["dep"] * len(governors))


def drawn(count, seed=1):
    """Random trees of two relations."""
    random.seed(seed)
    found = []
    for _ in range(count):
        size = random.randint(3, 8)
        root = random.randrange(size)
        governors = [ROOT if n == root else random.choice([m for m in range(size) if m != n]) for n in range(size)]
        found.append(sentence(governors, [random.choice(["nsubj", "obj"]) for _ in range(size)]))
    return found


def noise(size, seed=0):
    torch.manual_seed(seed + size)
    return torch.rand(*SHAPE, size, size)


@pytest.mark.parametrize("way", WAYS)
def test_the_head_that_follows_a_relation_is_found_with_its_way(way):
    pairs = []
    for parsed in drawn(40):
        weights = noise(len(parsed.words))
        for word, (governor, relation) in enumerate(zip(parsed.governors, parsed.relations, strict=True)):
            if governor != ROOT and relation == "obj":
                place = (word, governor) if way == TO_GOVERNOR else (governor, word)
                weights[(1, 2, *place)] = 5
        pairs.append((parsed, weights))
    scores = {score.relation: score for score in relation_scores(pairs)}
    found = scores["obj"]
    assert (found.layer, found.head, found.way, found.accuracy) == (1, 2, way, 1.0)
    assert scores["nsubj"].accuracy < 0.7
    assert found.baseline < 0.5


def test_accuracy_and_baseline_are_what_loops_say():
    pairs = [(parsed, noise(len(parsed.words), seed=n)) for n, parsed in enumerate(drawn(30, seed=2))]

    def right(half, relation, layer, head, way):
        found = []
        for parsed, weights in pairs[half::2]:
            matrix = weights[layer, head]
            for word, governor in enumerate(parsed.governors):
                if governor == ROOT or parsed.relations[word] != relation:
                    continue
                asked = matrix[word] if way == TO_GOVERNOR else matrix[:, word]
                others = [n for n in range(len(matrix)) if n != word]
                found.append(max(others, key=lambda n, asked=asked: float(asked[n])) == governor)
        return sum(found) / len(found)

    for score in relation_scores(pairs):
        places = [(layer, head, way) for way in WAYS for layer in range(2) for head in range(3)]
        best = max(right(0, score.relation, *place) for place in places)
        assert right(0, score.relation, score.layer, score.head, score.way) == best
        assert score.accuracy == pytest.approx(right(1, score.relation, score.layer, score.head, score.way))
        offsets = [
            governor - word
            for parsed, _ in pairs[1::2]
            for word, governor in enumerate(parsed.governors)
            if governor != ROOT and parsed.relations[word] == score.relation
        ]
        assert score.count == len(offsets)
        assert score.baseline == pytest.approx(offsets.count(score.offset) / len(offsets))


def test_the_baseline_is_the_commonest_place_of_the_governor():
    chain = sentence([1, 2, 3, ROOT])
    (score,) = relation_scores([(chain, noise(4)), (chain, noise(4))])
    assert (score.offset, score.baseline, score.count) == (1, 1.0, 3)


def test_a_word_is_not_its_own_governor():
    parsed = sentence([1, ROOT])
    weights = torch.eye(2).expand(1, 1, 2, 2) + 0.1
    (score,) = relation_scores([(parsed, weights)] * 2)
    assert score.accuracy == 1.0


def test_a_head_that_gives_no_other_word_weight_names_none():
    weights = torch.eye(3).expand(1, 1, 3, 3)
    (score,) = relation_scores([(sentence([ROOT, 0, 0]), weights)] * 2)
    assert (score.count, score.accuracy) == (2, 0.0)


def test_words_without_tokens_and_relations_of_one_half_are_left_out():
    weights = noise(3)
    weights[:, :, 1], weights[:, :, :, 1] = 0, 0
    parsed = sentence([1, 2, ROOT], ["a", "b", "root"])
    assert relation_scores([(parsed, weights)] * 2) == []
    assert relation_scores([(sentence([1, ROOT], ["a", "root"]), noise(2)), (sentence([ROOT, 0]), noise(2))]) == []
