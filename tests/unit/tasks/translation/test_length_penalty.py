import pytest

import regardant
from regardant.evaluation.translation import corpus_bleu
from regardant.run.training import train
from regardant.tasks.translation.learn import length_penalty

PENALTIES = (0.0, 1.0, 4.0)


@pytest.fixture
def asked(tiny_config):
    """TINY, trained for long enough that the penalty matters, with penalties to choose from."""
    return tiny_config(f"length_penalties={list(PENALTIES)}", "training.max_updates=60")


def test_the_penalty_with_the_best_score_is_kept(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(length_penalty, "FEWEST", 1)
    said = []
    train(asked, tmp_path / "run", said.append)
    run = regardant.load(tmp_path / "run")
    pairs = run.translation.validation_text()
    scores = {}
    for penalty in PENALTIES:
        texts = [one.text for one in run.translate(pairs["source"], engine="torch", length_penalty=penalty)]
        scores[penalty] = corpus_bleu(texts, pairs["target"], run.config.evaluation)
    best = max(scores, key=scores.get)
    assert len(set(scores.values())) > 1  # or any choice would pass
    assert run.config.generation.length_penalty == best
    assert any(line.startswith(f"length penalty {best:g} (bleu ") for line in said)


def test_a_choice_is_made_again_when_training_goes_on(asked, tiny_config, tmp_path, monkeypatch):
    monkeypatch.setattr(length_penalty, "FEWEST", 1)
    train(asked, tmp_path / "run", lambda line: None)
    said = []
    longer = tiny_config(f"length_penalties={list(PENALTIES)}", "training.max_updates=80")
    train(longer, tmp_path / "run", said.append)
    assert any(line.startswith("choosing one of 3 length penalties") for line in said)


def test_too_few_sentences_choose_nothing(asked, tmp_path):
    said = []
    train(asked, tmp_path / "run", said.append)
    assert regardant.load(tmp_path / "run").config.generation.length_penalty == asked.generation.length_penalty
    assert "40 validation sentences are too few to choose a length penalty by: 100 needed" in said
