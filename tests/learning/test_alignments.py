"""What attends learns by itself which word comes from which: a word's heaviest link is a gold link."""

from itertools import product

import numpy as np
import pytest

from regardant import config, run
from regardant.data.words import words
from regardant.evaluation.alignment import extract_links
from regardant.tasks.translation.alignment import word_attention
from regardant.tasks.translation.config import TranslationConfig

UPDATES = 1000
"""As many as fit into the minutes of `demo`; here a busy machine changes nothing."""

AGREEMENT = "The agreement on the European Economic Area was signed in August 1992."


@pytest.mark.slow
def test_the_heaviest_link_of_a_word_is_gold(tmp_path):
    budget = ("training.max_minutes=null", f"training.max_updates={UPDATES}")
    recipe = config.load(TranslationConfig, config.recipe("demo"), budget, origin="demo")
    run.train(recipe, tmp_path / "run", lambda line: None)
    trained = run.load(tmp_path / "run")
    pairs = trained.trained._pairs_to_measure([])
    half = len(pairs.sources) // 2
    attention = word_attention(trained.translator, pairs.sources, pairs.targets)
    places = list(product(*map(range, attention[0].shape[:3])))
    best = max(places, key=lambda place: agreement(attention[:half], pairs.gold[:half], place))
    assert agreement(attention[half:], pairs.gold[half:], best) >= 0.9
    # Adjectives turn around: European Economic Area, zone économique européenne.
    translation = trained.translate([AGREEMENT])[0].text
    (matrix,) = word_attention(trained.translator, [AGREEMENT], [translation])
    read, written = ([word.text for word in words(text)] for text in (AGREEMENT, translation))
    links = {written[target]: read[source] for source, target in extract_links(matrix[best])}
    assert (links["zone"], links["économique"], links["européenne"]) == ("Area", "Economic", "European")


def agreement(attention, gold, place) -> float:
    """The share of words with gold links whose heaviest link is one of these."""
    found = [(extract_links(matrix[place]), links) for matrix, links in zip(attention, gold, strict=True)]
    right = [link in links for chosen, links in found for link in chosen if any(link[1] == word for _, word in links)]
    return float(np.mean(right))
