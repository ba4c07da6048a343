"""Parts are tested with the shapes in annotations checked, which costs nothing outside of tests.

It stands here since the hook must be in place before anything, tests/conftest.py too, imports the package.
"""

from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest

MODULES = (
    "attention",
    "positions",
    "layers",
    "models.decoder_only",
    "models.encoder_decoder",
    "models.heads",
    "models.recurrent",
    "models.representations",
    "models.stacks",
    "models.vectors",
)
"""Not `models.base`: its protocols cannot be checked as they run."""

CHECKED = tuple(
    Path(__file__).parent / "tests" / folder
    for folder in ("contracts", "unit/attention", "unit/layers", "unit/models", "unit/positions")
)
"""What calls parts. Checks take longer than a small model itself, so that tests that train or search do without."""

jaxtyping.install_import_hook([f"regardant.{module}" for module in MODULES], "beartype.beartype")
jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def shapes_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the folders CHECKED, but not in what fixtures of a session make."""
    inside = any(request.path.is_relative_to(folder) for folder in CHECKED)
    jaxtyping.config.update("jaxtyping_disable", not inside)
    yield
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.fixture
def shapes_unchecked(shapes_checked: None) -> None:
    """For a test there that runs a part many times over, whose shapes others have checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
