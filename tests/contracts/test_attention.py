from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import AttentionConfig, ScaledDotProduct
from regardant.attention.linformer import LinformerConfig
from regardant.attention.masks import FIELDS
from regardant.attention.scaled_dot_product import sdpa
from regardant.attention.scored import ScoredAttention
from regardant.checks.contracts import CONTRACTS
from regardant.checks.contracts.scenes import HEAD_SIZE, LENGTH, NUM_HEADS, draw

from .mechanisms import MECHANISMS, NARROW


class SeesThePastAlone(ScaledDotProduct):
    honours = frozenset({"causal"})


MADE = {**MECHANISMS, "sees-the-past-alone": lambda: SeesThePastAlone(HEAD_SIZE)}

KEPT = [
    pytest.param(contract, make, id=f"{contract.name.replace(' ', '_')}-{name}")
    for contract in CONTRACTS.values()
    for name, make in MADE.items()
    if contract.applies_to(make())
]


@pytest.mark.parametrize(("contract", "make"), KEPT)
def test_every_mechanism_keeps_every_contract(contract, make):
    contract.keep(make)


class OwnMix(ScoredAttention):
    """A mechanism of a user, whose `mix` knows neither listed pairs nor dropout."""

    def compute_scores(self, q, k, view):
        return q @ k.mT

    def mix(self, q, k, v, view):
        return sdpa(q, k, v, view, 1.0)


def test_a_mechanism_with_a_mix_of_its_own_drops_weights_of_a_sparse_mask():
    CONTRACTS["what training drops is dropped from the weights"].keep(OwnMix)


def test_a_mechanism_that_claims_to_list_pairs_is_asked_to_drop_them():
    class Claims(OwnMix):
        lists_pairs = True

    with pytest.raises(AssertionError, match="sparse-pairs"):
        CONTRACTS["what training drops is dropped from the weights"].keep(Claims)


HONOURS = {
    "additive cosine entmax general graph_attention hard scaled_dot_product top_k": FIELDS,
    "segment sparse strided window": ("causal", "keys", "bias", "query_positions", "key_positions"),
    "linear lsh performer": ("causal", "keys"),
    "linformer local_predictive": ("keys",),
    "location": ("causal", "keys", "pairs", "bias"),
}
"""What mechanisms promise: contracts leave out what they do not."""


def test_mechanisms_honour_what_was_promised():
    made = {kind: config().build(num_heads=2, head_size=4) for kind, config in AttentionConfig.kinds().items()}
    own = {kind: one for kind, one in made.items() if type(one).__module__.startswith("regardant.")}
    promised = {kind: set(fields) for kinds, fields in HONOURS.items() for kind in kinds.split()}
    assert {kind: set(one.honours) for kind, one in own.items()} == promised
    assert [kind for kind, one in own.items() if not one.has_scores] == ["linformer"]
    table = Path(__file__).parents[2] / "docs" / "mechanisms.md"
    rows = [line.split(" | ") for line in table.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    causal = {row[0].strip("| `"): row[3].startswith("yes") for row in rows if len(row) == 5}
    assert causal == {kind: "causal" in fields for kind, fields in promised.items()}


def test_every_mechanism_of_the_package_is_under_contract():
    assert {"scaled_dot_product/sdpa", "scaled_dot_product/matmul"} <= set(MECHANISMS)
    assert set(AttentionConfig.kinds()) <= {name.split("/")[0] for name in MECHANISMS}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_order_of_keys_counts_where_a_mechanism_says_so(name):
    mechanism = MECHANISMS[name]()
    q, k, v = draw(LENGTH, LENGTH)
    order = torch.arange(LENGTH).roll(2)
    found, moved = mechanism(q, k, v), mechanism(q, k[:, :, order], v[:, :, order])
    if not mechanism.reads_order:
        assert_close(moved, found, rtol=1e-4, atol=1e-5)
    elif name.endswith("/narrow") or name.split("/")[0] not in NARROW:  # a wide window reaches all keys in any order
        assert (moved - found).abs().max() > 1e-3


def test_a_mechanism_without_scores_says_so():
    mechanism = LinformerConfig().build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)
    q, k, _ = draw(LENGTH, LENGTH)
    with pytest.raises(ValueError, match="Linformer does not score pairs: look at its weights"):
        mechanism.scores(q, k)
