"""Routes of the page *Step through*."""

from typing import Any

from fastapi import APIRouter

from regardant.studio.composed_masks import AskedMask, composed
from regardant.studio.five_steps import AskedQuery, five_steps
from regardant.studio.open_runs import Asked, OpenRuns
from regardant.studio.shapes import traced
from regardant.studio.streams import AskedPlace, streams


def routes(runs: OpenRuns) -> APIRouter:
    """`/api/steps`, `/api/streams`, `/api/shapes` and `/api/mask`."""
    router = APIRouter(prefix="/api")

    @router.post("/steps")
    def steps(asked: AskedQuery) -> dict[str, Any]:
        with runs.trained(asked.run, asked.off) as trained:
            return five_steps(trained, asked)

    @router.post("/streams")
    def stream(asked: AskedPlace) -> dict[str, Any]:
        with runs.trained(asked.run, asked.off) as trained:
            return streams(trained, asked)

    @router.post("/shapes")
    def shapes(asked: Asked) -> dict[str, Any]:
        with runs.trained(asked.run, asked.off) as trained:
            return traced(trained, asked)

    @router.post("/mask")
    def mask(asked: AskedMask) -> dict[str, Any]:
        return composed(asked)

    return router
