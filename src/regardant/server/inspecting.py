"""Routes under `/v1/` that score given texts and inspect the attention over an item."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regardant.run import Run
from regardant.server.bodies import InspectBody, ScoreBody, Scores
from regardant.server.items import given
from regardant.server.limits import Limits, Refusal
from regardant.server.service import Asking, Service
from regardant.server.worker import ModelCall, Worker
from regardant.tasks.inspection import Inspection


def routes(service: Service) -> APIRouter:
    """Return the router of `/v1/score` and `/v1/inspect`."""
    router, limits = APIRouter(prefix="/v1"), service.limits

    @router.post("/score", response_model=Scores)
    async def score(body: ScoreBody, request: Request) -> Response:
        """Score texts by a language model, or translations of items by a translator."""
        worker = service.worker(body.run)
        _require_scored(worker, body, limits)
        with given(worker, body.items, limits) as (items, _):
            asking = Asking(worker, request)
            if body.targets is None:
                found = await asking.answer_rows("score", _score_text, items)
            else:
                pairs = list(zip(items, body.targets, strict=True))
                longest = max(len(one) for pair in pairs for one in pair)
                found = await asking.answer(ModelCall(_score_pairs, pairs, longest, "score"))
        return JSONResponse({"run": worker.name, "scores": found})

    @router.post("/inspect", response_model=dict[str, Any])
    async def inspect(body: InspectBody, request: Request) -> Response:
        """Inspect the attention over an item, as `regardant inspect --out FILE.json` does."""
        worker = service.worker(body.run)
        limits.require_text("target", body.target or "")
        limits.require_most("beam_size", body.beam_size, limits.max_beam_size)
        options = body.model_dump(include={"target", "beam_size"}, exclude_none=True)

        def compute(run: Run, rows: list[str]) -> Sequence[Any]:
            return [_inspection(run, rows[0], limits, options)]

        with given(worker, [body.item], limits, "item") as (items, folder):
            (found,) = await Asking(worker, request).answer(ModelCall(compute, items))
        return Response(found.replace(folder, ""), media_type="application/json")

    return router


def _score_text(run: Run, rows: list[str]) -> Sequence[Any]:
    return [run.score(row).as_dict() for row in rows]


def _score_pairs(run: Run, rows: list[tuple[str, str]]) -> Sequence[Any]:
    found = run.score([item for item, _ in rows], [target for _, target in rows])
    return [{"log_probability": one} for one in found]


def _inspection(run: Run, item: str, limits: Limits, options: dict[str, Any]) -> str:
    found = run.trained.inspect(item, **options)
    numbers = num_weights(found)
    if numbers > limits.inspected_numbers:
        raise Refusal(
            f"the item has {numbers:,} attention weights, allowed are {limits.inspected_numbers:,}: give a shorter one"
        )
    return json.dumps(found.as_dict(), ensure_ascii=False)


def num_weights(found: Inspection) -> int:
    """Return the number of attention weights of an inspection, without computing them."""
    heads = {
        kind: sum(found.records[f"{place}.query"][0].shape[1] for place in places)
        for kind, places in found.layers.items()
    }
    matrices = [*heads.items(), *((kind, len(places)) for kind, places in found.mixers.items())]
    return sum(count * len(found.rows(kind).labels) * len(found.columns(kind).labels) for kind, count in matrices)


def _require_scored(worker: Worker[Run], body: ScoreBody, limits: Limits) -> None:
    """Raise Refusal for a run that scores no text, and for a request without the texts that the run scores."""
    config = worker.run.config
    if not hasattr(worker.run.trained, "score"):
        raise Refusal(f"{worker.name} is a run of {config.task}, which scores no text: use /v1/predict")
    if "generate" in config.verbs:
        if body.targets is not None:
            raise Refusal("targets was given, but a language model scores `items` alone: leave it out")
        return
    if body.targets is None or len(body.targets) != len(body.items):
        raise Refusal(
            f"items has {len(body.items)} entries and targets {len(body.targets or [])}: give as many of each"
        )
    limits.require_texts("targets", body.targets)
