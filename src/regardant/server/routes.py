"""The addresses under `/v1/`: what runs compute for requests, by calls of their workers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regardant.errors import RegardantError
from regardant.run import Run
from regardant.server.bodies import (
    InspectBody,
    PredictBody,
    Predictions,
    ScoreBody,
    Scores,
    ServedRun,
    TranslateBody,
    Translations,
)
from regardant.server.items import read_items, suffixes_of
from regardant.server.limits import Limits, Refusal
from regardant.server.service import Asking, Service
from regardant.server.worker import ModelCall, Worker


def routes(service: Service) -> APIRouter:
    """`/v1/runs`, `/v1/translate`, `/v1/predict`, `/v1/score` and `/v1/inspect`."""
    router, limits = APIRouter(prefix="/v1"), service.limits

    @router.get("/runs", response_model=list[ServedRun])
    async def runs() -> Response:
        """List the runs that are served."""
        return JSONResponse([_described(worker) for worker in service.workers.values()])

    @router.post("/translate", response_model=Translations)
    async def translate(body: TranslateBody, request: Request) -> Response:
        """Translate texts. Requests with equal options share batches."""
        worker = service.worker(body.run, "translate")
        limits.require_texts("texts", body.texts)
        limits.require_most("beam_size", body.beam_size, limits.max_beam_size)
        limits.require_most("nbest", body.nbest, limits.max_beam_size)
        options: dict[str, Any] = body.model_dump(include={"beam_size", "nbest", "length_penalty"})

        def compute(run: Run, rows: list[str]) -> Sequence[Any]:
            return run.translate(rows, **options)

        call = ModelCall(compute, body.texts, max(map(len, body.texts)), ("translate", *options.values()))
        found = await Asking(service, worker, request).answer(call)
        return JSONResponse({"run": worker.name, "translations": [_as_dict(one) for one in found]})

    @router.post("/predict", response_model=Predictions)
    async def predict(body: PredictBody, request: Request) -> Response:
        """Predict the answer to items of any run: labels, translations, forecasts, continuations."""
        worker = service.worker(body.run)
        with given(worker, body.items, limits) as (items, folder):
            found = await _each_or_all(Asking(service, worker, request), "predict", _predict, items)
            answers = [json.loads(json.dumps(one.as_dict()).replace(folder, "")) for one in found]
        return JSONResponse({"run": worker.name, "predictions": answers})

    @router.post("/score", response_model=Scores)
    async def score(body: ScoreBody, request: Request) -> Response:
        """Score texts: by a language model, or by a translator as the translations of items."""
        worker = service.worker(body.run)
        _require_scored(worker, body, limits)
        with given(worker, body.items, limits) as (items, _):
            asking = Asking(service, worker, request)
            if body.targets is None:
                found = await _each_or_all(asking, "score", _score_text, items)
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

        with given(worker, [body.item], limits) as (items, folder):
            (found,) = await Asking(service, worker, request).answer(ModelCall(compute, items))
        return Response(found.replace(folder, ""), media_type="application/json")

    return router


@contextmanager
def given(worker: Worker, items: Sequence[Any], limits: Limits) -> Iterator[tuple[list[str], str]]:
    """Return items as the run reads them, and the folder of those that are files, which exists while the block runs.

    Messages of errors name files as the request does.
    """
    with TemporaryDirectory(prefix="regardant-") as folder:
        try:
            yield read_items(worker.run.config, items, Path(folder), limits, "items"), f"{folder}/"
        except RegardantError as error:
            if isinstance(error, Refusal) or folder not in str(error):
                raise
            raise Refusal(str(error).replace(f"{folder}/", "")) from error


async def _each_or_all(asking: Asking, kind: str, compute: Any, rows: list[str]) -> list[Any]:
    """Return the results of all rows. A language model takes them one by one, so that others come between them."""
    if "generate" not in asking.worker.run.config.verbs:
        return await asking.answer(ModelCall(compute, rows, max(map(len, rows)), kind))
    found: list[Any] = []
    for row in rows:
        found += await asking.answer(ModelCall(compute, [row]), is_begun=bool(found))
    return found


def _predict(run: Run, rows: list[str]) -> Sequence[Any]:
    return run.predict(rows)


def _score_text(run: Run, rows: list[str]) -> Sequence[Any]:
    return [run.score(row).as_dict() for row in rows]


def _score_pairs(run: Run, rows: list[tuple[str, str]]) -> Sequence[Any]:
    found = run.score([item for item, _ in rows], [target for _, target in rows])
    return [{"log_probability": one} for one in found]


def _inspection(run: Run, item: str, limits: Limits, options: dict[str, Any]) -> str:
    found = run.trained.inspect(item, **options)
    numbers = sum(picture.weights.size for picture in found.pictures)
    if numbers > limits.inspected_numbers:
        raise Refusal(
            f"the item has {numbers:,} attention weights, allowed are {limits.inspected_numbers:,}: give a shorter one"
        )
    return json.dumps(found.as_dict(), ensure_ascii=False)


def _require_scored(worker: Worker, body: ScoreBody, limits: Limits) -> None:
    """Raise Refusal unless a request has the texts that the run scores."""
    config = worker.run.config
    if not hasattr(worker.run.trained, "score"):
        raise Refusal(f"{worker.name} is a run of {config.task}, which scores no text: ask /v1/predict")
    if "generate" in config.verbs:
        if body.targets is not None:
            raise Refusal("targets was given, but a language model scores `items` alone: leave it out")
        return
    if body.targets is None or len(body.targets) != len(body.items):
        raise Refusal(
            f"items has {len(body.items)} entries and targets {len(body.targets or [])}: give as many of each"
        )
    limits.require_texts("targets", body.targets)


def _as_dict(found: Any) -> dict[str, Any]:
    candidates = [{"text": one.text, "score": one.score} for one in found.candidates]
    return {**candidates[0], "candidates": candidates, "notes": found.notes}


def _described(worker: Worker) -> dict[str, Any]:
    config = worker.run.config
    return {
        "run": worker.name,
        "task": config.task,
        "verbs": [*config.verbs, "predict"],
        "files": suffixes_of(config.suffixes),
    }
