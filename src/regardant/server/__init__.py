"""The server: trained runs behind an HTTP interface (`docs/serving.md`).

`serve` binds the address, `app` builds the web application, `service` holds the runs, `worker` computes batches of
calls in one thread per run. `admission` and `hosts` authorise requests, `limits` bounds them, `connections` disconnects
slow clients. The studio uses `listening` and `hosts`, too.
"""

from regardant.errors import ConfigError

try:
    import fastapi  # noqa: F401  # imported here, so that a missing package is reported once
    import limits  # noqa: F401
    import uvicorn  # noqa: F401
except ModuleNotFoundError as error:
    raise ConfigError(f"the server needs {error.name}: pip install 'regardant[serve]'") from error
