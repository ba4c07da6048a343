"""Contracts of attention, which every mechanism must keep, of this package or in a user's module.

`scenes` has queries and keys under every kind of view, `contract` defines a contract, `attention` holds all contracts.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from regardant.attention import Attention, AttentionConfig
from regardant.checks.contracts import attention as attention  # fills CONTRACTS
from regardant.checks.contracts.contract import CONTRACTS, BrokenContract, Contract, Make
from regardant.checks.contracts.scenes import HEAD_SIZE, NUM_HEADS

__all__ = ["CONTRACTS", "BrokenContract", "Contract", "Contracts", "check_contracts", "maker"]


BUILT = "the mechanism can be built"
"""Name of the contract that a mechanism breaks whose `build` raises."""


@dataclass(frozen=True)
class Contracts:
    """Results of the contracts of one mechanism."""

    kept: list[str]
    broken: Mapping[str, str]
    """Failures by name of the contract."""
    left_out: list[str]
    """Contracts on fields of a view that the mechanism does not honour."""

    def lines(self) -> list[str]:
        """Return the results as lines for people."""
        broken = [f"BROKEN  {name}: {why}" for name, why in self.broken.items()]
        left_out = f", {len(self.left_out)} do not apply" if self.left_out else ""
        total = len(self.kept) + len(self.broken)
        return [*broken, f"contracts       {len(self.kept)} of {total} kept{left_out}"]


def maker(config: AttentionConfig) -> Make:
    """Return a function that builds the mechanism of a configuration, with the same weights every time."""
    return functools.partial(_build, config)


def _build(config: AttentionConfig) -> Attention:
    torch.default_generator.manual_seed(0)  # torch.manual_seed takes 1 ms: it keeps the stack for other devices
    return config.build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)


def check_contracts(make: Make) -> Contracts:
    """Check every contract that applies to a mechanism. A mechanism that cannot be built breaks a contract of its own,
    and no other is checked."""
    kept, broken, left_out = [], {}, []
    try:
        honoured = make()
    except Exception as error:  # of a user's `build` or `__init__`
        return Contracts([], {BUILT: _explained(error)}, [])
    for name, contract in CONTRACTS.items():
        if not contract.applies_to(honoured):
            left_out.append(name)
            continue
        try:
            contract.keep(make)
        except Exception as error:  # a user's mechanism may raise anything
            broken[name] = _explained(error)
        else:
            kept.append(name)
    return Contracts(kept, broken, left_out)


def _explained(error: Exception) -> str:
    """Return the first two lines of a failure with its scene."""
    message_lines = [line.strip() for line in str(error).splitlines() if line.strip()][:2] or ["no message"]
    kind = [] if isinstance(error, AssertionError) else [type(error).__name__]
    return "; ".join([*kind, *message_lines, *getattr(error, "__notes__", [])])
