"""Routes of the page *Step through*."""

from typing import Any

from fastapi import APIRouter, Request

from regardant.studio.composed_masks import AskedMask, composed
from regardant.studio.five_steps import AskedQuery, five_steps
from regardant.studio.open_runs import Asked, OpenRuns
from regardant.studio.shapes import traced
from regardant.studio.streams import AskedPlace, streams


def routes(runs: OpenRuns) -> APIRouter:
    """Return `/api/steps`, `/api/streams`, `/api/shapes` and `/api/mask`."""
    router = APIRouter(prefix="/api")

    @router.post("/steps")
    async def steps(asked: AskedQuery, request: Request) -> dict[str, Any]:
        return await runs.answer(request, asked.run, lambda trained: five_steps(trained, asked), asked.off)

    @router.post("/streams")
    async def stream(asked: AskedPlace, request: Request) -> dict[str, Any]:
        return await runs.answer(request, asked.run, lambda trained: streams(trained, asked), asked.off)

    @router.post("/shapes")
    async def shapes(asked: Asked, request: Request) -> dict[str, Any]:
        return await runs.answer(request, asked.run, lambda trained: traced(trained, asked), asked.off)

    @router.post("/mask")
    def mask(asked: AskedMask) -> dict[str, Any]:
        return composed(asked)

    return router
