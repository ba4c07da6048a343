"""The verb that serves runs to other programs."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import log
from regardant.cli.options import Engine, app


@app.command()
def serve(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders; their last part is the name in requests.")
    ],
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; an API key is needed unless it is loopback.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0: any free one.")] = 8000,
    max_batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum number of texts or items in a batch, and in a request.")
    ] = 32,
    max_wait_ms: Annotated[
        float, typer.Option(min=0, max=1000, metavar="MS", help="Maximum time that a text waits for its batch to fill.")
    ] = 5.0,
    max_queue: Annotated[
        int, typer.Option(min=1, metavar="N", help="Texts in a run's queue at most; further ones get status 429.")
    ] = 256,
    max_rate: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Requests per second from one address; further ones get status 429."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Timeout of a request, with status 504.")
    ] = 30.0,
    max_characters: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum characters of a text.")] = 4000,
    engine: Engine = "auto",
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the API key. [default: the environment's REGARDANT_API_KEY]"),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain in PEM, for HTTPS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key of the certificate in PEM.")] = None,
    log_bodies: Annotated[
        bool, typer.Option("--log-bodies", help="Log the bodies of requests, which hold the texts of users.")
    ] = False,
) -> None:
    """Serve runs to other programs over HTTP. Answers requests for translations, predictions, continuations, scores and
    attention, with dynamic batching. SIGTERM and Ctrl-C end the server after accepted work; SIGHUP reloads the runs.

    Examples:
        regardant serve runs/demo
        regardant serve runs/demo runs/sst2 --host 0.0.0.0 --api-key-file key.txt
    """
    from regardant.server.limits import Limits
    from regardant.server.serve import Address
    from regardant.server.serve import serve as serve_runs

    limits = Limits(
        max_batch=max_batch,
        max_wait_ms=max_wait_ms,
        max_queue=max_queue,
        max_rate=max_rate,
        timeout=timeout,
        max_characters=max_characters,
    )
    serve_runs(runs, Address(host, port, api_key_file, tls_cert, tls_key), limits, log, engine, logs_bodies=log_bodies)
