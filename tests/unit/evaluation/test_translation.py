import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from regardant.errors import DataError
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu, score

REFERENCES = [
    "Le chat est assis sur le tapis.",
    "Deux hommes, un chien et l'autre chat jouent dans le parc.",
    "Une femme n'a pas vu la voiture rouge.",
    "L'accord sur la zone économique européenne a été signé en août 1992.",
]
HYPOTHESES = [
    "Le chat est sur le tapis.",
    "Deux hommes, un chien et un autre chat jouent dans un parc.",
    "une Femme n'a pas vu la voiture rouge.",
    "L'accord sur la zone européenne a été signé en août 1992.",
]


def test_scores_are_those_of_sacrebleu():
    scores = score(HYPOTHESES, REFERENCES, TranslationMetrics())
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.ter == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score


def test_bleu_is_that_of_the_sacrebleu_command(tmp_path: Path):
    (tmp_path / "hypotheses").write_text("\n".join(HYPOTHESES) + "\n", encoding="utf-8")
    (tmp_path / "references").write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", "hypotheses", "-w", "6", "--score-only"]
    printed = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert f"{score(HYPOTHESES, REFERENCES, TranslationMetrics()).bleu:.6f}" == printed.strip()


def test_bleu_alone_is_the_same_bleu():
    config = TranslationMetrics(tokenize="char", lowercase=True)
    assert corpus_bleu(HYPOTHESES, REFERENCES, config) == score(HYPOTHESES, REFERENCES, config).bleu


def test_a_perfect_translation_has_all_points():
    scores = score(REFERENCES, REFERENCES, TranslationMetrics())
    assert (scores.bleu, scores.chrf, scores.ter) == pytest.approx((100, 100, 0))


def test_signatures_name_tokenizer_and_case():
    cased = score(HYPOTHESES, REFERENCES, TranslationMetrics())
    assert {"tok:13a", "case:mixed", f"version:{sacrebleu.__version__}"} <= set(cased.signature.split("|"))
    assert "case:mixed" in cased.chrf_signature.split("|")
    blind = score(HYPOTHESES, REFERENCES, TranslationMetrics(tokenize="intl", lowercase=True))
    assert {"tok:intl", "case:lc"} <= set(blind.signature.split("|"))
    assert "case:lc" in blind.chrf_signature.split("|")
    assert "case:lc" in cased.ter_signature.split("|")


def test_lowercase_forgives_case():
    cased, blind = TranslationMetrics(), TranslationMetrics(lowercase=True)
    assert corpus_bleu(["LE CHAT EST LÀ"], ["le chat est là"], cased) == 0
    assert corpus_bleu(["LE CHAT EST LÀ"], ["le chat est là"], blind) == pytest.approx(100)


def test_without_tokenisation_a_full_stop_belongs_to_its_word():
    tokenised = TranslationMetrics(tokenize="none")
    assert corpus_bleu(["a b c d ."], ["a b c d."], tokenised) < 100
    assert corpus_bleu(["a b c d ."], ["a b c d."], TranslationMetrics()) == pytest.approx(100)


def test_only_text_that_should_not_be_tokenised_is_warned_about(caplog: pytest.LogCaptureFixture):
    lines = ["a b c d ."] * 100
    corpus_bleu(lines, lines, TranslationMetrics(tokenize="none"))
    assert not caplog.records
    corpus_bleu(lines, lines, TranslationMetrics())
    assert "forgot to detokenize" in caplog.text


@pytest.mark.parametrize(
    "hypotheses",
    [HYPOTHESES, REFERENCES, ["nothing"] * 4, [""] * 4],
    ids=["some", "all", "none", "empty"],
)
def test_the_interval_holds_the_score(hypotheses: list[str]):
    scores = score(hypotheses, REFERENCES, TranslationMetrics())
    low, high = scores.bleu_interval
    assert low <= scores.bleu <= high


@pytest.mark.parametrize("index", range(len(REFERENCES)))
def test_the_interval_of_a_single_sentence_holds_its_score(index: int):
    config = TranslationMetrics(bootstrap_samples=2)
    scores = score(HYPOTHESES[index : index + 1], REFERENCES[index : index + 1], config)
    low, high = scores.bleu_interval
    assert low <= scores.bleu <= high
    assert high - low == pytest.approx(0, abs=1e-4)


def test_the_interval_holds_95_percent_of_the_scores_of_resampled_sentences():
    drawn = np.random.default_rng(12345).choice(len(REFERENCES), size=(50, len(REFERENCES)))
    resampled = [
        sacrebleu.corpus_bleu([HYPOTHESES[row] for row in rows], [[REFERENCES[row] for row in rows]]).score
        for rows in drawn
    ]
    scores = score(HYPOTHESES, REFERENCES, TranslationMetrics(bootstrap_samples=50))
    assert scores.bleu_interval == pytest.approx(tuple(np.quantile(resampled, [0.025, 0.975])), abs=1e-4)


def test_the_interval_of_a_low_score_does_not_reach_below_zero():
    """One sentence of ten is right: a third of the resamples have none that is, and the scores are skewed."""
    references = ["the old cat saw a dog", *["a dog sat on the mat"] * 9]
    scores = score([references[0], *["x x x x x x"] * 9], references, TranslationMetrics())
    assert scores.bleu == pytest.approx(10)
    assert scores.bleu_interval == pytest.approx((0, 30), abs=1e-4)


def test_the_signature_is_that_of_sacrebleu_with_the_resamples():
    metric = sacrebleu.BLEU()
    metric.corpus_score(HYPOTHESES, [REFERENCES], n_bootstrap=50)
    scores = score(HYPOTHESES, REFERENCES, TranslationMetrics(bootstrap_samples=50))
    assert scores.signature == str(metric.get_signature())
    assert {"bs:50", "seed:12345"} <= set(scores.signature.split("|"))


def test_as_dict_has_plain_values():
    scores = score(HYPOTHESES, REFERENCES, TranslationMetrics())
    assert scores.as_dict() == {
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "ter": scores.ter,
        "signature": scores.signature,
        "chrf_signature": scores.chrf_signature,
        "ter_signature": scores.ter_signature,
        "bleu_interval": list(scores.bleu_interval),
    }


@pytest.mark.parametrize("measure", [score, corpus_bleu])
@pytest.mark.parametrize("hypotheses", [["a"], ["a", "b", "c"]])
def test_unequal_counts_are_refused(measure, hypotheses: list[str]):
    with pytest.raises(DataError, match=rf"^{len(hypotheses)} translations for 2 references; give one"):
        measure(hypotheses, ["a", "b"], TranslationMetrics())


def test_an_empty_corpus_is_refused():
    with pytest.raises(DataError, match=r"^0 translations for 0 references; .* at least one$"):
        score([], [], TranslationMetrics())
