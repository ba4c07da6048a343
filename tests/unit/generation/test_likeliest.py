import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.generation.beam import likeliest
from regardant.generation.greedy import best_word


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    beam_size=st.sampled_from([1, 3]),
    vocab_size=st.integers(1, 3000),
    wanted=st.integers(1, 30),
    ties=st.booleans(),
)
def test_the_likeliest_are_those_of_a_sort(seed, beam_size, vocab_size, wanted, ties):
    generator = torch.Generator().manual_seed(seed)
    log_probabilities = torch.randn(2, beam_size, vocab_size, generator=generator)
    totals = torch.randn(2, beam_size, generator=generator)
    if ties:
        log_probabilities, totals = log_probabilities.round(), totals.round()
    log_probabilities[torch.rand(2, beam_size, vocab_size, generator=generator) < 0.3] = -torch.inf
    totals[0, beam_size - 1] = -torch.inf  # an empty beam
    sums = (totals[..., None] + log_probabilities).flatten(1)
    found, places = likeliest(totals, log_probabilities, wanted)
    assert torch.equal(found, sums.sort(descending=True).values[:, :wanted])
    assert torch.equal(sums.gather(1, places), found)
    assert all(len(set(row)) == min(wanted, beam_size * vocab_size) for row in places.tolist())


@given(seed=st.integers(0, 10_000), vocab_size=st.integers(1, 700), ties=st.booleans())
def test_the_best_word_has_the_largest_number(seed, vocab_size, ties):
    generator = torch.Generator().manual_seed(seed)
    log_probabilities = torch.randn(3, vocab_size, generator=generator)
    if ties:
        log_probabilities = log_probabilities.round()
    log_probabilities[0] = -torch.inf
    best, words = best_word(log_probabilities)
    assert torch.equal(best, log_probabilities.amax(1, keepdim=True))
    assert torch.equal(log_probabilities.gather(1, words), best)
