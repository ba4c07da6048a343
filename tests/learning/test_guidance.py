"""A head that is taught alignments knows them long before one that finds them by itself."""

import pytest

from regardant.tasks.translation.look.alignment import error_rates, word_attention

FEW = "training.max_updates=100"
GUIDED = ("data.links=gold", "alignment_guidance.weight=0.5", "alignment_guidance.head=1")


@pytest.fixture
def rates(trained):
    """The error rate of each head of a run's cross-attention, unshifted."""

    def measure(*overrides):
        run = trained(FEW, *overrides)
        validation = run.trained._pairs_to_measure([])
        words = word_attention(run.translator, validation.sources, validation.targets)
        return error_rates(words, validation.gold)[0, 0]

    return measure


def test_the_guided_head_aligns_words_after_few_updates(rates):
    guided, free = rates(*GUIDED), rates()
    assert guided[1] < 0.55 < free.min() - 0.15
    assert guided[1] < guided[0] - 0.25
