import pytest

from regardant.attention import AttentionConfig, ScaledDotProduct
from regardant.attention.linformer import LinformerConfig
from regardant.checks.contracts import CONTRACTS
from regardant.checks.contracts.scenes import HEAD_SIZE, LENGTH, NUM_HEADS, draw

from .mechanisms import MECHANISMS


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


def test_every_mechanism_of_the_package_is_under_contract():
    assert {"scaled_dot_product/sdpa", "scaled_dot_product/matmul"} <= set(MECHANISMS)
    assert set(AttentionConfig.kinds()) <= {name.split("/")[0] for name in MECHANISMS}


def test_a_mechanism_without_scores_says_so():
    mechanism = LinformerConfig().build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)
    q, k, _ = draw(LENGTH, LENGTH)
    with pytest.raises(ValueError, match="Linformer does not score pairs: look at its weights"):
        mechanism.scores(q, k)
