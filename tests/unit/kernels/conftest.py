from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import pytest

from . import compiled, interpreted


@pytest.fixture(scope="session")
def interpret():
    """Return a function that calls another where Triton's interpreter is on."""
    with process(interpreted.begin) as call:
        yield call


@pytest.fixture(scope="session")
def compile_kernel():
    """Return a function that calls another where Triton compiles."""
    with process(compiled.begin) as call:
        yield call


@contextmanager
def process(begin):
    """Give what calls functions in a process that begins so."""
    if not (interpreted.FOLDER / "ready").is_file():
        pytest.skip("no Triton: make test installs it")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=begin) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()
