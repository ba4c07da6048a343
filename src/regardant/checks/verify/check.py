"""One claim of the lectures: the printed value, the true value, the measured value and the verdict.

True values are text, and their digits define the tolerance:

    0.227738    within half a unit of the last digit
    1.5±0.2     within 0.2, for values that are sampled or computed in float32
    <1e-12      smaller than that        >0.01   larger
    sat         this word
    a b; c d    a table, whose rows end at semicolons
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

COURSE = "05 Attention and Transformers"
MISSAOUI = "Attention and Transformers, Missaoui"
PITIE = "10 - Attention Mechanism and Transformer Model, Pitié"
WALKTHROUGH = "Attention is All You Need, the walk-through"
WANG = "Attention Mechanism and Transformer Architecture, Wang"

Verdict = Literal["right", "rounded", "partly", "wrong", "unstated", "experiment"]
"""Verdict on the lecture's claim. unstated: the lecture gives no value. experiment: only training can decide."""

TableCell = float | int | str
Table = list[list[TableCell]]

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
BOUND = re.compile(f"[<>]{NUMBER.pattern}")
HALF_A_UNIT = 0.505  # a true value that was itself rounded may lie right on the edge


class Attend(Protocol):
    """Scaled dot-product attention of one head."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix v [m, e] into [n, e] by q [n, d] and k [m, d]. mask [n, m] is True where a query may see a key."""


@dataclass(frozen=True)
class Claim:
    """A lecture's statement and the true figures. A claim with several figures names them."""

    id: str
    title: str
    source: str
    """The lecture's title."""
    lecture: str | Mapping[str, str] | None
    """The lecture's figures or words. None: the lecture gives none."""
    true: str | Mapping[str, str]
    """The true figures, with their tolerance."""
    verdict: Verdict
    note: str = ""
    """Reason for the verdict, for people."""

    def measured(self, measure: Callable[[], Any]) -> "Check":
        """Decorate the function that measures the figures."""
        return Check(self, lambda _: measure(), attends=False)

    def attended(self, measure: Callable[[Attend], Any]) -> "Check":
        """Decorate a function that measures the figures with scaled dot-product attention, ours or a learner's."""
        return Check(self, measure, attends=True)

    def shown_by(self, check: "Check", *names: str) -> "Check":
        """Return a check of this claim by the named figures of another check, or by all of them."""
        figures = named(check.claim.true)
        kept = {name: figures[name] for name in names or figures}

        def measure(attend: Attend) -> dict[str, Any]:
            found = check.found(attend)
            return {name: found[name] for name in kept}

        return Check(replace(self, true=kept), measure, attends=False)

    def cited(self, evidence: str) -> "Check":
        """Return a check of a statement that only a source can decide."""
        return Check(self, lambda _: {}, attends=False, evidence=evidence)


@dataclass(frozen=True)
class Check:
    """A claim with the function that measures it."""

    claim: Claim
    measure: Callable[[Attend], Any]
    """Function that returns one value or, if the claim has several figures, values by name."""
    attends: bool
    """True if `measure` uses the attention that it is given."""
    evidence: str = ""
    """Source that decides the claim, if nothing is measured."""

    def found(self, attend: Attend) -> dict[str, Any]:
        """Measure with a fixed seed of random numbers. Returns values by the name of their figure."""
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found = self.measure(attend)
        return found if isinstance(found, dict) else {"": found}

    def run(self, attend: Attend, least: float = 0.0) -> "Checked":
        """Measure. `least` is the minimum tolerance, whatever the digits say."""
        figures = {name: _table(value) for name, value in self.found(attend).items()}
        return Checked(self.claim, figures, least, self.evidence)


@dataclass(frozen=True)
class Figure:
    """One measured figure of a check beside the true one."""

    name: str
    true: list[list[str]]
    measured: Table
    least: float
    """Minimum tolerance."""

    @property
    def fits(self) -> bool:
        """True if the measured table has the shape of the true one."""
        return [len(row) for row in self.true] == [len(row) for row in self.measured]

    @property
    def ok(self) -> bool:
        """True if all values agree with the true ones."""
        return self.fits and all(_difference(*pair) <= _allowed(pair[0], self.least) for pair in self._pairs())

    @property
    def difference(self) -> float:
        """Largest difference of a value from the true one, infinite if values are missing or a word differs."""
        return max((_difference(*pair) for pair in self._pairs()), default=0.0) if self.fits else math.inf

    def shown(self) -> str:
        """Return the measured values as text, with as many digits as the true ones."""
        if not self.fits:
            return "; ".join(" ".join(_shown("", value) for value in row) for row in self.measured)
        rows = zip(self.true, self.measured, strict=True)
        return "; ".join(" ".join(map(_shown, true, measured)) for true, measured in rows)

    def _pairs(self) -> list[tuple[str, TableCell]]:
        rows = zip(self.true, self.measured, strict=True)
        return [pair for true, measured in rows for pair in zip(true, measured, strict=True)]


@dataclass(frozen=True)
class Checked:
    """A claim with its measured figures."""

    claim: Claim
    measured: dict[str, Table]
    least: float
    evidence: str = ""

    @property
    def figures(self) -> list[Figure]:
        """Figures in the order of the claim."""
        true = named(self.claim.true)
        if unknown := self.measured.keys() ^ true.keys():
            raise ValueError(f"{self.claim.id} measures other figures than it claims: {', '.join(sorted(unknown))}")
        return [Figure(name, _rows(text), self.measured[name], self.least) for name, text in true.items()]

    @property
    def ok(self) -> bool:
        """True if every figure agrees with the true one."""
        return all(figure.ok for figure in self.figures)

    @property
    def difference(self) -> float:
        """Largest difference among figures that do not agree. 0 if all agree."""
        return max((figure.difference for figure in self.figures if not figure.ok), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json. Numbers are numbers; a bound or a word is text."""
        claim = self.claim
        lecture = None if claim.lecture is None else _by_name({n: _said(t) for n, t in named(claim.lecture).items()})
        return {
            "id": claim.id,
            "title": claim.title,
            "lecture": lecture,
            "true": _by_name({figure.name: _value(_numbers(figure.true)) for figure in self.figures}),
            "measured": _by_name({figure.name: _value(figure.measured) for figure in self.figures}),
            "evidence": self.evidence,
            "note": claim.note,
            "verdict": claim.verdict,
            "ok": self.ok,
        }


def named(figures: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return figures by name. The name of a single figure is empty."""
    return {"": figures} if isinstance(figures, str) else figures


def _rows(text: str) -> list[list[str]]:
    return [row.split() for row in text.split(";")]


def _table(value: Any) -> Table:
    """Return a number, a tensor, words or a list of them as rows of plain numbers and words."""
    value = _listed(value)
    if not isinstance(value, list):
        return [[_plain(value)]]
    parts = [_listed(part) for part in value]
    rows = parts if any(isinstance(part, list) for part in parts) else [parts]
    return [[_plain(item) for item in (row if isinstance(row, list) else [row])] for row in rows]


def _listed(value: Any) -> Any:
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, str):
        words = value.split()
        return words if len(words) > 1 else value
    return list(value) if isinstance(value, tuple) else value


def _plain(value: Any) -> TableCell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # as a word: JSON has no such numbers
    return value if isinstance(value, str | int) else float(value)


def _difference(true: str, measured: TableCell) -> float:
    if BOUND.fullmatch(true) and not isinstance(measured, str):
        size, bound = abs(measured), float(true[1:])
        return size if true[0] == "<" else max(0.0, bound - size)
    centre = true.partition("±")[0]
    if isinstance(measured, str) or not NUMBER.fullmatch(centre):
        return 0.0 if true == measured else math.inf
    return abs(measured - float(centre))


def _allowed(true: str, least: float) -> float:
    if BOUND.fullmatch(true):
        return max(float(true[1:]), least) if true[0] == "<" else 0.0
    centre, _, spread = true.partition("±")
    if spread:
        return max(float(spread), least)
    if not NUMBER.fullmatch(centre):
        return 0.0
    return max(HALF_A_UNIT * 10.0 ** int(Decimal(centre).as_tuple().exponent), least)


def _shown(true: str, measured: TableCell) -> str:
    if isinstance(measured, str):
        return measured
    centre = true.partition("±")[0]
    if not NUMBER.fullmatch(centre):
        return f"{measured:.4g}"
    mantissa, _, exponent = centre.partition("e")
    digits = len(mantissa.partition(".")[2])
    if not exponent:
        return f"{measured:z.{digits}f}"
    return re.sub(r"e([-+])0*", r"e\1", f"{measured:.{digits}e}").replace("e+", "e")


def _said(text: str) -> Any:
    """Return a lecture's text as numbers if it holds nothing else."""
    rows = _rows(text)
    return _value(_numbers(rows)) if all(NUMBER.fullmatch(item) for row in rows for item in row) else text


def _numbers(rows: list[list[str]]) -> Table:
    return [[_number(item) for item in row] for row in rows]


def _number(text: str) -> TableCell:
    centre = text.partition("±")[0]
    if not NUMBER.fullmatch(centre):
        return text
    return float(centre) if re.search("[.e]", centre) else int(centre)


def _value(rows: Table) -> Any:
    """Return the flattest form of a table: a single value, a list, or a list of lists."""
    if len(rows) > 1:
        return rows
    return rows[0] if len(rows[0]) > 1 else rows[0][0]


def _by_name(values: dict[str, Any]) -> Any:
    return values[""] if values.keys() == {""} else values
