"""Attention finds which word comes from which: a word's heaviest link is a gold link.

The Transformer's finds it by itself. Bahdanau's looks where its encoder's states know most, at the noun for its article:
seven words of ten by itself, so here it is guided by the links of the training pairs.
"""

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
ACCORD = "L'accord sur la zone économique européenne a été signé en août 1992."

RECURRENT = "{kind: recurrent, embedding_size: 128, hidden_size: 256, dropout: 0.0, decoder: {kind: bahdanau}}"

MODELS = {
    "transformer": (),
    "bahdanau": (f"model={RECURRENT}", "data.links=gold", "alignment_guidance.weight=0.2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_heaviest_link_of_a_word_is_gold(tmp_path, model):
    asked = (*MODELS[model], "training.max_minutes=null", f"training.max_updates={UPDATES}")
    recipe = config.load(TranslationConfig, config.recipe("demo"), asked, origin="demo")
    run.train(recipe, tmp_path / "run", lambda line: None)
    trained = run.load(tmp_path / "run")
    pairs = trained.trained._pairs_to_measure([])
    half = len(pairs.sources) // 2
    attention = word_attention(trained.translator, pairs.sources, pairs.targets)
    places = list(product(*map(range, attention[0].shape[:3])))
    best = max(places, key=lambda place: agreement(attention[:half], pairs.gold[:half], place))
    assert agreement(attention[half:], pairs.gold[half:], best) >= 0.9
    # Adjectives turn around: European Economic Area, zone économique européenne.
    (matrix,) = word_attention(trained.translator, [AGREEMENT], [ACCORD])
    read, written = ([word.text for word in words(text)] for text in (AGREEMENT, ACCORD))
    links = {written[target]: read[source] for source, target in extract_links(matrix[best])}
    assert (links["zone"], links["économique"], links["européenne"]) == ("Area", "Economic", "European")


def agreement(attention, gold, place) -> float:
    """The share of words with gold links whose heaviest link is one of these."""
    found = [(extract_links(matrix[place]), links) for matrix, links in zip(attention, gold, strict=True)]
    right = [link in links for chosen, links in found for link in chosen if any(link[1] == word for _, word in links)]
    return float(np.mean(right))
