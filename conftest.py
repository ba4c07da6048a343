"""All tests run with the shapes in annotations checked, which costs nothing outside of tests.

It stands here since the hook must be in place before anything, tests/conftest.py too, imports the package.
"""

from jaxtyping import install_import_hook

MODULES = (
    "attention",
    "positions",
    "layers",
    "models.encoder",
    "models.decoder",
    "models.decoder_only",
    "models.encoder_decoder",
    "models.heads",
    "models.representations",
)
"""Not `models.base`: its protocols cannot be checked as they run."""

install_import_hook([f"regardant.{module}" for module in MODULES], "beartype.beartype")
