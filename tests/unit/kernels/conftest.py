from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from . import interpreted


@pytest.fixture(scope="session")
def interpret():
    """Return a function that calls another where Triton's interpreter is on."""
    if not (interpreted.FOLDER / "ready").is_file():
        pytest.skip("no Triton: make test installs it")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=interpreted.begin) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()
