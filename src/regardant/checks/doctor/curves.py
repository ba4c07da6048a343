"""Checks of metrics.jsonl: gradient norms and losses."""

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from regardant.checks.doctor.case import Case, DoctorCheck, Finding, LeftOut, Seen, lower_rate, middle
from regardant.pictures import Curve, line_chart

MOST_POINTS = 200
"""Maximum number of points of a drawn curve."""

EXPLODES = 10.0
"""Gradient norm that healthy training seldom exceeds after UNDER_WAY, for a loss that is a mean over tokens."""
OFTEN = 0.05
"""Maximum healthy share of training events above EXPLODES. The recipe `reverse` has two of ninety."""
BURSTS = 10 * EXPLODES
"""Norm that is a finding at any share of events, if a second event is above EXPLODES too."""
VANISHES = 1e-4
"""Median gradient norm in the second half of a run below which gradients vanish, if the loss is still high."""

UNDER_WAY = 0.1
"""Share of a run after which gradient norms should have settled."""

SPIKE, SPIKE_RATIO = 1.0, 1.5
"""Excess of a spike over the median of the five training events before it, in nats and as a ratio."""

RISE, RISE_RATIO = 0.3, 1.2
"""Excess of the final loss over the lowest, in nats and as a ratio, that indicates too high a learning rate. A rise by
SPIKE between any two tenths of the run indicates the same."""

OVERFIT, OVERFIT_RATIO = 0.1, 1.15
"""Excess of the last validation loss over the lowest, in nats and as a ratio, that indicates overfitting."""

STILL_FALLING, STILL_FALLING_RATIO = 0.5, 0.8
"""Fall of the loss in the last quarter of a run, in nats and as the ratio left, that indicates too early a stop."""

LEARNED_NOTHING = 0.95
"""Share of the first loss above which the loss of the last tenth shows no learning."""


def gradient_norms(case: Case) -> Seen:
    """Find gradients that are not finite, that explode or that vanish."""
    if not case.training:
        raise LeftOut("no update has been logged yet")
    lost = [event for event in case.training if event["gradient_norm"] is None or event.get("skipped")]
    if lost:
        return Seen("not finite", [_not_finite(case, lost[0]["update"])])
    norms = case.curve("gradient_norm")
    later = norms[int(UNDER_WAY * len(norms)) :]
    values = [norm for _, norm in later]
    measured = f"{min(values):.2g} to {max(values):.2g}, median {median(values):.2g}, after the first tenth"
    findings = []
    large = [(update, norm) for update, norm in later if norm > EXPLODES]
    if len(large) > 1 and (len(large) > OFTEN * len(later) or max(norm for _, norm in large) > BURSTS):
        findings.append(_exploding(case, large, median(values)))
    losses = case.curve("loss")
    if middle(norms, 0.5, 1) < VANISHES and middle(losses, 0.9, 1) > 0.5 * losses[0][1]:
        findings.append(_vanishing(norms, losses))
    return Seen(measured, findings, [_drawn("gradient norm before clipping", [Curve("gradient norm", thinned(norms))])])


def loss_spikes(case: Case) -> Seen:
    """Find jumps of the training loss."""
    losses = case.curve("loss")
    spikes = []
    for place in range(5, len(losses)):
        before = median(loss for _, loss in losses[place - 5 : place])
        update, loss = losses[place]
        if loss > before + SPIKE and loss > SPIKE_RATIO * before:
            spikes.append((update, before, loss))
    if not spikes:
        return Seen(f"none in {losses[-1][0]:,} updates")
    update, before, loss = max(spikes, key=lambda spike: spike[2] - spike[1])
    precise = "set training.precision=float32, " if case.decided.precision != "float32" else ""
    finding = Finding(
        "the training loss has spikes",
        f"{len(spikes)}, the highest at update {update:,}, from {before:.2f} to {loss:.2f}",
        f"{precise}double training.accumulate (now {case.config.training.accumulate}), or {lower_rate(case)}",
    )
    return Seen(f"{len(spikes)}", [finding])


def learning(case: Case) -> Seen:
    """Check that the training loss falls and stays low."""
    losses = case.curve("loss")
    tenths = [middle(losses, tenth / 10, (tenth + 1) / 10) for tenth in range(10)]
    first, lowest, last = losses[0][1], min(tenths), tenths[-1]
    findings = []
    rise, before, after = max((b - a, a, b) for a, b in combinations(tenths, 2))
    if rise > SPIKE or (last > lowest + RISE and last > RISE_RATIO * lowest):
        findings.append(
            Finding(
                "the learning rate is too high: the training loss rose again",
                f"medians of tenths of the run, {case.loss_unit}: from {before:.2f} to {after:.2f}, {last:.2f} at the "
                "end",
                f"{lower_rate(case)}, or raise training.schedule.warmup_steps",
            )
        )
    elif last > LEARNED_NOTHING * first and case.config.training.start_from is None:
        findings.append(
            Finding(
                "nothing was learned",
                f"the training loss was {first:.2f} {case.loss_unit} at update {losses[0][0]:,} and is {last:.2f} in "
                "the last tenth of the run",
                f"{lower_rate(case)}; or check that inputs and targets belong together",
            )
        )
    curves = [Curve("training", thinned(losses))]
    if case.validations:
        curves.append(Curve("validation", [(event["update"], event["loss"]) for event in case.validations]))
    return Seen(
        f"{first:.2f} {case.loss_unit} at the start, {last:.2f} at the end",
        findings,
        [_drawn(f"loss, {case.loss_unit}", curves)],
    )


def overfitting(case: Case) -> Seen:
    """Find a validation loss that rises while the training loss falls."""
    losses = [(event["update"], event["loss"]) for event in case.validations]
    if len(losses) < 3:
        raise LeftOut(f"{len(losses)} validations are too few to judge")
    (at, best), (end, last) = min(losses, key=lambda point: point[1]), losses[-1]
    measured = f"validation loss {best:.2f} at best, {last:.2f} at the end"
    kept = case.kept["update"]
    if last <= best + OVERFIT or last <= OVERFIT_RATIO * best or kept > 0.75 * end:
        return Seen(measured)
    dropout = getattr(case.config.model, "dropout", None)
    more = "" if dropout is None else f"raise model.dropout (now {dropout:g}), "
    finding = Finding(
        "the model overfits",
        f"the validation loss was lowest at update {at:,} ({best:.2f}) and is {last:.2f} at update {end:,}; the "
        f"kept weights are from update {kept:,}",
        f"{more}train on more data, take a smaller model, or set training.patience=3 to stop earlier",
    )
    return Seen(measured, [finding])


def plateau(case: Case) -> Seen:
    """Find training that stopped while the loss was still falling."""
    losses = case.curve("loss")
    progress = case.training[-1]["progress"]
    if progress < 1:
        raise LeftOut(f"training is at {progress:.0%} of its budget")
    before, last = middle(losses, 0.7, 0.8), middle(losses, 0.9, 1)
    measured = f"training loss {before:.2f} before the last quarter, {last:.2f} at its end"
    if last > before - STILL_FALLING or last > STILL_FALLING_RATIO * before:
        return Seen(measured)
    training = case.config.training
    budgets = [name for name in ("max_minutes", "max_updates", "max_epochs") if getattr(training, name)]
    raised = " and ".join(f"training.{name} (now {getattr(training, name):g})" for name in budgets)
    finding = Finding(
        "training stopped while the loss was still falling",
        f"{before:.2f} {case.loss_unit} before the last quarter of the run, {last:.2f} at its end",
        f"raise {raised}",
    )
    return Seen(measured, [finding])


CURVES = (
    DoctorCheck("gradient norms", gradient_norms),
    DoctorCheck("learning", learning),
    DoctorCheck("loss spikes", loss_spikes),
    DoctorCheck("overfitting", overfitting),
    DoctorCheck("plateau", plateau),
)


def thinned(points: Sequence[tuple[int, float]]) -> Sequence[tuple[float, float]]:
    """Return at most MOST_POINTS evenly spaced points, the last one among them."""
    every = -(-len(points) // MOST_POINTS)
    return points[(len(points) - 1) % every :: every]


def _not_finite(case: Case, update: int) -> Finding:
    earlier = [event["gradient_norm"] for event in case.training if event["update"] < update][-3:]
    norms = ", ".join("not finite" if norm is None else f"{norm:.3g}" for norm in earlier)
    before = f"; before it {norms}" if earlier else ""
    return Finding(
        "gradients explode: they are not finite",
        f"at update {update:,} or shortly before{before}",
        f"{lower_rate(case)}{_clipping(case)}",
    )


def _exploding(case: Case, large: Sequence[tuple[int, float]], usual: float) -> Finding:
    update, norm = max(large, key=lambda point: point[1])
    return Finding(
        "gradients explode",
        f"norms over {EXPLODES:g} in {len(large)} lines of metrics.jsonl from update {large[0][0]:,} on, the largest "
        f"{norm:.3g} at update {update:,}; the median is {usual:.2g}",
        f"{lower_rate(case)}{_clipping(case)}, or raise training.schedule.warmup_steps",
    )


def _vanishing(norms: Sequence[tuple[int, float]], losses: Sequence[tuple[int, float]]) -> Finding:
    return Finding(
        "gradients vanish",
        f"their median norm in the second half is {middle(norms, 0.5, 1):.1g}, while the loss is still "
        f"{middle(losses, 0.9, 1):.2f}, from {losses[0][1]:.2f} at the start",
        "set model.norm=pre and model.residual=add, or take fewer layers; in a recurrent model, set cell=lstm or gru",
    )


def _clipping(case: Case) -> str:
    return "" if case.config.training.clip_norm else ", set training.clip_norm=1"


def _drawn(label: str, curves: Sequence[Curve]) -> str:
    return line_chart(curves, title=f"{label}, over updates", x_label="updates", y_label=label)
