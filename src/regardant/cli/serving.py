"""The verb that serves runs to other programs."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import log
from regardant.cli.options import Engine, app


@app.command()
def serve(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs; requests name them by their last part.")
    ],
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on. One that other machines reach needs an API key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0: any free one.")] = 8000,
    max_batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Texts or items that are computed at once, and of one request.")
    ] = 32,
    max_wait_ms: Annotated[
        float, typer.Option(min=0, max=1000, metavar="MS", help="Time that a text waits for others to fill its batch.")
    ] = 5.0,
    max_queue: Annotated[
        int, typer.Option(min=1, metavar="N", help="Texts of a run that may wait; more are answered by status 429.")
    ] = 256,
    max_rate: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Requests a second of one address; more are answered by status 429."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Time of a request; then its status is 504.")
    ] = 30.0,
    max_characters: Annotated[int, typer.Option(min=1, metavar="N", help="Characters of a text.")] = 4000,
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
    """Serve runs to other programs over HTTP. Translations, predictions, continuations, scores and attention; requests
    that arrive together are computed in one batch. SIGTERM or Ctrl-C ends it after accepted work, SIGHUP opens runs
    again.

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
