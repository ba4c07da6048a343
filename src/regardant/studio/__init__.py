"""The studio: browser pages that follow runs while they train and inspect trained ones, on this machine only.

`app` builds the web application, `guard` restricts its clients, `serve` runs it on a port. `catalogue` lists the runs,
`curves` reads their training events, `open_runs` keeps trained models, `items` provides items for them,
`attention_routes` and `steps` inspect them.
"""

from regardant.errors import ConfigError

try:
    import fastapi  # noqa: F401  # imported here, so that a missing package is reported once
    import plotly  # noqa: F401  # its wheel has the library that draws the curves
    import uvicorn  # noqa: F401
except ModuleNotFoundError as error:
    raise ConfigError(f"the studio needs {error.name}: pip install 'regardant[studio]'") from error
