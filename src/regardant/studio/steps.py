"""What the page *Step through* asks for."""

from typing import Any

from fastapi import APIRouter

from regardant.studio.composed_masks import AskedMask, composed
from regardant.studio.five_steps import AskedQuery, five_steps
from regardant.studio.opened import Asked, Opened
from regardant.studio.shapes import traced
from regardant.studio.streams import AskedPlace, streams
from regardant.studio.writing import written


def routes(opened: Opened) -> APIRouter:
    """`/api/steps`, `/api/written`, `/api/streams`, `/api/shapes` and `/api/mask`."""
    router = APIRouter(prefix="/api")

    @router.post("/steps")
    def steps(asked: AskedQuery) -> dict[str, Any]:
        with opened.translator(asked.run, asked.off) as translator:
            return five_steps(translator, asked)

    @router.post("/written")
    def write(asked: Asked) -> dict[str, Any]:
        with opened.translator(asked.run, asked.off) as translator:
            return written(translator, asked)

    @router.post("/streams")
    def stream(asked: AskedPlace) -> dict[str, Any]:
        with opened.translator(asked.run, asked.off) as translator:
            return streams(translator, asked)

    @router.post("/shapes")
    def shapes(asked: Asked) -> dict[str, Any]:
        with opened.translator(asked.run, asked.off) as translator:
            return traced(translator, asked)

    @router.post("/mask")
    def mask(asked: AskedMask) -> dict[str, Any]:
        return composed(asked)

    return router
