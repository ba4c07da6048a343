"""Routes under `/v1/` that list runs, translate and predict, by calls to the workers of the runs."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regardant.run import Run
from regardant.server.bodies import PredictBody, Predictions, ServedRun, TranslateBody, Translations
from regardant.server.items import given, suffixes_of
from regardant.server.limits import Limits
from regardant.server.service import Asking, Service
from regardant.server.worker import ModelCall, Worker


def routes(service: Service) -> APIRouter:
    """Return the router of `/v1/runs`, `/v1/translate` and `/v1/predict`."""
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
            return run.translate(rows, engine=service.engine, **options)

        call = ModelCall(compute, body.texts, max(map(len, body.texts)), ("translate", *options.values()))
        found = await Asking(worker, request).answer(call)
        return JSONResponse({"run": worker.name, "translations": [_as_dict(one) for one in found]})

    @router.post("/predict", response_model=Predictions)
    async def predict(body: PredictBody, request: Request) -> Response:
        """Predict the answer to items of any run: labels, translations, forecasts, continuations."""
        worker = service.worker(body.run)

        def compute(run: Run, rows: list[str]) -> Sequence[Any]:
            return run.predict(rows, **_limited(run, limits))

        with given(worker, body.items, limits) as (items, folder):
            found = await Asking(worker, request).answer_rows("predict", compute, items)
            answers = json.dumps([one.as_dict() for one in found]).replace(folder, "")
        finite = json.loads(answers, parse_constant=lambda name: None)  # JSON has no NaN and no infinity
        return JSONResponse({"run": worker.name, "predictions": finite})

    return router


def _limited(run: Run, limits: Limits) -> dict[str, int]:
    """Return the options of a prediction: the number of tokens that a language model writes, within the limit."""
    if "generate" not in run.config.verbs:
        return {}
    return {"max_tokens": min(run.config.generation.max_tokens, limits.max_tokens)}  # type: ignore[attr-defined]


def _as_dict(found: Any) -> dict[str, Any]:
    candidates = [{"text": one.text, "score": one.score} for one in found.candidates]
    return {**candidates[0], "candidates": candidates, "notes": found.notes}


def _described(worker: Worker[Run]) -> dict[str, Any]:
    config = worker.run.config
    return {
        "run": worker.name,
        "task": config.task,
        "verbs": [*config.verbs, "predict"],
        "files": suffixes_of(config.suffixes),
    }
