"""The studio: pages in a browser that watch runs train and look into what they have become. On this machine alone.

`app` makes the web application, `guard` says who may ask it, `serve` puts it on a port. `catalogue` knows the runs,
`curves` tells of their training, `opened` keeps translators, `looks` and `steps` look into them.
"""

from regardant.errors import ConfigError

try:
    import fastapi  # noqa: F401  # asked for here, so that nobody meets the error elsewhere
    import plotly  # noqa: F401  # its wheel has the library that draws the curves
    import uvicorn  # noqa: F401
except ModuleNotFoundError as error:
    raise ConfigError(f"the studio needs {error.name}: pip install 'regardant[studio]'") from error
