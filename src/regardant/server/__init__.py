"""The server: trained runs behind an HTTP interface (`docs/serving.md`).

`serve` puts it on an address, `app` makes the web application, `service` holds the runs, `worker` computes batches of
calls in a thread for each run. `admission` and `hosts` decide who may ask, `limits` how much, `connections` cuts off
slow clients. `listening` and `hosts` also serve the studio.
"""

from regardant.errors import ConfigError

try:
    import fastapi  # noqa: F401  # imported here, so that a missing package is reported once
    import limits  # noqa: F401
    import uvicorn  # noqa: F401
except ModuleNotFoundError as error:
    raise ConfigError(f"the server needs {error.name}: pip install 'regardant[serve]'") from error
