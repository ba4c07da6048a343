import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
import torch
from torch import nn

from regardant.checks.verify import CHECKS, verify
from regardant.checks.verify.check import BOUND, NUMBER, Claim, named
from regardant.checks.verify.mechanisms import ours
from regardant.data.batching import PairBatch
from regardant.models.representations import JoinedParts, Patches
from regardant.models.transformer import TransformerConfig

STATEMENTS = [f"E-{number:02}" for number in range(1, 60)]
IDS = [*(f"N-{number:02}" for number in range(1, 65)), *STATEMENTS]


@pytest.fixture(scope="module")
def found():
    """What our own code measures, by id."""
    return {one.claim.id: one for one in verify().checked}


def numbers(text: str) -> list[list[str]] | None:
    rows = [row.split() for row in text.split(";")]
    return rows if all(NUMBER.fullmatch(item) for row in rows for item in row) else None


def unit(number: str) -> Decimal:
    """One in the last digit."""
    return Decimal((0, (1,), int(Decimal(number).as_tuple().exponent)))


def another(token: str) -> str:
    """A value just beyond what the token allows."""
    if BOUND.fullmatch(token):
        return {"<": ">", ">": "<"}[token[0]] + token[1:]
    centre, _, spread = token.partition("±")
    if not NUMBER.fullmatch(centre):
        return token + "x"
    step = 3 * Decimal(spread) if spread else 2 * unit(centre)
    return f"{Decimal(centre) + step}".lower() + (f"±{spread}" if spread else "")


def with_one_other(text: str) -> Iterator[str]:
    """The text with each of its tokens changed in turn."""
    for match in re.finditer(r"[^\s;]+", text):
        yield text[: match.start()] + another(match.group()) + text[match.end() :]


def test_each_claim_has_one_check():
    assert [check.claim.id for check in CHECKS] == IDS


@pytest.mark.parametrize("id", IDS)
def test_what_is_measured_is_true(found, id):
    assert [f"{figure.name}: {figure.shown()}" for figure in found[id].figures if not figure.ok] == []
    assert found[id].ok


@pytest.mark.parametrize("id", IDS)
def test_any_other_true_value_would_be_noticed(found, id):
    one = found[id]
    true = named(one.claim.true)
    for name, text in true.items():
        for changed in with_one_other(text):
            wrong = replace(one, claim=replace(one.claim, true={**true, name: changed}))
            assert not wrong.ok, f"{name}: {changed}"
            assert wrong.difference > 0


@pytest.mark.parametrize("id", IDS)
def test_the_verdict_follows_from_the_numbers_where_both_are_numbers(found, id):
    claim = found[id].claim
    lecture, true = named(claim.lecture or {}), named(claim.true)
    apart = []
    for name in lecture.keys() & true.keys():
        said, right = numbers(lecture[name]), numbers(true[name])
        if said is None or right is None:
            continue
        assert list(map(len, said)) == list(map(len, right))
        pairs = [pair for rows in zip(said, right, strict=True) for pair in zip(*rows, strict=True)]
        apart += [abs(Decimal(a) - Decimal(b)) / unit(a) for a, b in pairs]
    if claim.verdict in ("right", "rounded"):
        assert all(units <= Decimal("0.5") for units in apart)
    if claim.verdict == "wrong" and apart:
        assert any(units > Decimal("0.5") for units in apart)


@pytest.mark.parametrize("id", IDS)
def test_a_claim_is_told_in_full(found, id):
    claim = found[id].claim
    assert claim.title and claim.source
    assert len(claim.title) <= 38, "the printed table would cut it"
    assert (claim.lecture is None) <= (claim.verdict == "unstated")
    assert claim.note or claim.verdict in ("right", "unstated")


BUGS = {
    "N-32": (TransformerConfig, "build_last_norm", lambda self: nn.Identity()),
    "N-33": (TransformerConfig, "build_last_norm", lambda self: nn.Identity()),
    "N-44": (Patches, "_with_class_token", lambda self, embedded, values: (embedded, values)),
    "N-47": (PairBatch, "targets", property(lambda self: self.target[:, :-1])),
    "N-49": (JoinedParts, "embed", lambda self, inputs: self.parts["image"](inputs.parts[0])),
    "E-27": (PairBatch, "targets", property(lambda self: self.target[:, :-1])),
}


@pytest.mark.parametrize("id", BUGS)
def test_a_claim_of_what_the_project_has_is_measured_by_it(monkeypatch, id):
    check = next(one for one in CHECKS if one.claim.id == id)
    assert check.run(ours).ok
    monkeypatch.setattr(*BUGS[id])
    assert not check.run(ours).ok


VERDICTS = {
    "right": "01 11 18 20 22 23 27 29 32 33 36 38 39 40 42 44 45 49 59 62 63",
    "rounded": "02 12 34",
    "partly": "05 08 15 16 19 21 25 28 35 43 48 51 52 53 54 57",
    "wrong": "03 06 07 09 10 13 14 24 26 37 41 46 47 56 58",
    "unstated": "04 17 30 31 50 55 60 61",
    "experiment": "64",
}


def test_verdicts_are_those_of_the_lectures(found):
    for verdict, numbers in VERDICTS.items():
        ids = [id.removeprefix("N-") for id, one in found.items() if id[0] == "N" and one.claim.verdict == verdict]
        assert (verdict, " ".join(ids)) == (verdict, numbers)


def test_claims_of_the_same_words_have_the_same_verdict(found):
    verdicts = {}
    for id, one in found.items():
        if one.claim.lecture is not None:
            verdicts.setdefault(tuple(named(one.claim.lecture).items()), {})[id] = one.claim.verdict
    assert {"N-57", "E-39"} in [set(claims) for claims in verdicts.values()]
    assert [claims for claims in verdicts.values() if len(set(claims.values())) > 1] == []


def test_outputs_of_gated_cells_are_bounded_and_cell_states_are_not(found):
    figures = {figure.name: figure.measured for figure in found["E-12"].figures}
    assert figures["largest output for inputs of a thousand, LSTM and GRU"][0][0] <= 1.000001
    assert figures["cell state of an LSTM after 50 steps, all gates open"][0][0] == pytest.approx(50)


SOURCES = "E-07 E-14 E-26 E-36 E-40 E-50 E-56"


def test_each_statement_is_measured_or_has_a_source_that_says_so(found):
    assert " ".join(id for id, one in found.items() if one.evidence) == SOURCES
    for id in STATEMENTS:
        one = found[id]
        assert bool(one.figures) != bool(one.evidence), id
        assert one.claim.note and one.claim.lecture is not None
        assert one.claim.verdict in ("wrong", "partly")


def test_a_statement_has_the_figures_of_the_number_that_shows_it():
    number = Claim("N-00", "t", "s", None, {"a": "1", "b": "2", "c": "3"}, "right").measured(
        lambda: dict(a=1, b=2, c=9)
    )
    shown = Claim("E-00", "t", "s", "x", {}, "wrong").shown_by(number, "b", "a").run(ours)
    assert shown.claim.true == {"b": "2", "a": "1"}
    assert shown.ok and [figure.name for figure in shown.figures] == ["b", "a"]
    assert not Claim("E-00", "t", "s", "x", {}, "wrong").shown_by(number).run(ours).ok


def test_a_second_run_measures_the_same_and_leaves_the_random_numbers_alone(found):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    again = next(check for check in CHECKS if check.claim.id == "N-20").run(ours)
    assert torch.equal(torch.rand(3), expected)
    assert again.measured == found["N-20"].measured


# How exactly a value must agree


def checked(true, measured, least=0.0):
    claim = Claim("N-00", "t", "s", None, true, "right")
    return claim.measured(lambda: measured).run(ours, least)


@pytest.mark.parametrize(
    ("true", "measured", "ok"),
    [
        ("0.25", 0.2549, True),
        ("0.25", 0.2551, False),
        ("0.250", 0.2549, False),
        ("7", 7.4, True),
        ("7", 8, False),
        ("63082496", 63082497, False),
        ("2.656e-5", 2.6564e-5, True),
        ("2.656e-5", 2.657e-5, False),
        ("1.5±0.2", 1.69, True),
        ("1.5±0.2", 1.71, False),
        ("<1e-6", -9e-7, True),
        ("<1e-6", 2e-6, False),
        (">0.1", -0.2, True),
        (">0.1", 0.05, False),
        ("cat", "cat", True),
        ("cat", "dog", False),
        ("yes", True, True),
        ("0 1", [False, 1.0], False),
        ("nan", float("nan"), True),
        ("0.5", float("nan"), False),
        ("<1e-6", float("nan"), False),
        ("1 2", torch.tensor([1, 2]), True),
        ("1 2", [1], False),
        ("1 2", [[1, 2], [1, 2]], False),
        ("1; 2 3", [torch.tensor([1]), torch.tensor([2, 3])], True),
        ("1 2", torch.tensor([[1], [2]]), False),
    ],
)
def test_digits_say_how_exactly_a_value_holds(true, measured, ok):
    assert checked(true, measured).ok is ok
    assert (checked(true, measured).difference == 0) is ok


def test_a_learner_s_rounding_is_allowed_for():
    assert not checked("0.500000", 0.500002).ok
    assert checked("0.500000", 0.500002, least=3e-6).ok
    assert checked("<1e-12", 1e-7, least=3e-6).ok
    assert not checked("cat", "dog", least=3e-6).ok


def test_a_figure_that_is_not_claimed_is_a_mistake_in_the_check():
    with pytest.raises(ValueError, match="N-00 measures other figures than it claims: b"):
        _ = checked({"a": "1"}, {"a": 1, "b": 2}).ok


@pytest.mark.parametrize(
    ("true", "measured", "shown"),
    [
        ("0.250", 0.2549, "0.255"),
        ("7", 7.4, "7"),
        ("1.746928e-7", 1.7469281e-7, "1.746928e-7"),
        ("3.15e23", 3.1501e23, "3.15e23"),
        ("0.00", -1e-9, "0.00"),
        ("1.5±0.2", 1.5449, "1.5"),
        ("<1e-6", 1.23e-7, "1.23e-07"),
        ("1 2; 3 4", torch.tensor([[1, 2], [3, 4]]), "1 2; 3 4"),
        ("1 2", 0.5, "0.5"),
    ],
)
def test_a_value_is_shown_in_the_digits_that_are_true(true, measured, shown):
    (figure,) = checked(true, measured).figures
    assert figure.shown() == shown
