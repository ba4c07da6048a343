"""The server as a web application."""

from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import PlainTextResponse, Response
from fastapi.security import HTTPBearer

from regardant import __version__
from regardant.server import inspecting, routes, streaming
from regardant.server.admission import Access, Admission
from regardant.server.answers import STATUSES, add_problems, problem
from regardant.server.bodies import Problem
from regardant.server.body_limit import BodyLimit
from regardant.server.observing import Observing
from regardant.server.service import Service

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def make_app(service: Service, access: Access) -> FastAPI:
    """Return the application that serves the runs of a service."""
    app = FastAPI(
        title="Regardant",
        version=__version__,
        description="Trained runs: translations, predictions, continuations, scores, attention.",
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
    )
    add_problems(app)
    app.add_middleware(BodyLimit, most=service.limits.body_bytes)
    app.add_middleware(Admission, service=service, access=access)
    app.add_middleware(Observing, service=service)
    bearer = [] if access.key is None else [Depends(HTTPBearer(auto_error=False))]
    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": line} for status, line in STATUSES.items()
    }
    for router in (routes.routes(service), inspecting.routes(service), streaming.routes(service)):
        app.include_router(router, dependencies=bearer, responses=problems)
    app.include_router(_operations(service))
    return app


def _operations(service: Service) -> APIRouter:
    """Return the router of `/health`, `/ready` and `/metrics`."""
    router = APIRouter()

    @router.get("/health", response_class=Response, responses={503: {"model": Problem}})
    async def health() -> Response:
        """Answer with status 200 while the process works. If the status is 503, restart it."""
        return (
            Response()
            if len(service.alive) == len(service.workers)
            else problem("a worker has ended: start the server again", 503)
        )

    @router.get("/ready", response_class=Response, responses={503: {"model": Problem}})
    async def ready() -> Response:
        """Answer with status 200 while the server accepts requests."""
        if service.is_draining:
            return problem("the server is shutting down: use another one", 503)
        return await health()

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Report metrics in the text format of Prometheus."""
        return Response(service.metrics.text(), media_type=PROMETHEUS)

    return router
