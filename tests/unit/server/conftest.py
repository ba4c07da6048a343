import base64
from contextlib import ExitStack
from threading import Event, Thread

import pytest
from fastapi.testclient import TestClient

from regardant.server.admission import Access
from regardant.server.app import make_app
from regardant.server.limits import Limits
from regardant.server.listening import AnnouncingServer, bound
from regardant.server.serve import Address, configured
from regardant.server.service import Service

LIMITS = Limits(max_batch=4, max_wait_ms=0, max_characters=80, max_beam_size=3, max_tokens=30, body_bytes=20_000)
SENTENCE = "The old judge sees the small cat."
AT = "http://localhost:8000"


@pytest.fixture(scope="session")
def named_runs(tmp_path_factory, trained, trained_on_text, trained_on_digits):
    """Links to a translator, a language model and a classifier of images, by the names `demo`, `text` and `digits`."""
    folder = tmp_path_factory.mktemp("named")
    for name, run in {"demo": trained(), "text": trained_on_text(), "digits": trained_on_digits()}.items():
        (folder / name).symlink_to(run.folder)
    return folder


@pytest.fixture
def serving(named_runs):
    """A function that makes a service over runs, which ends with the test."""
    made = []

    def serve(*names, limits=LIMITS, engine="torch"):
        lines = []
        made.append(Service([named_runs / name for name in names], limits, lines.append, engine))
        made[-1].lines = lines
        return made[-1]

    yield serve
    for service in made:
        service.close()


@pytest.fixture(scope="session")
def shared_service(named_runs):
    """A service over all three runs."""
    service = Service([named_runs / name for name in ("demo", "text", "digits")], LIMITS, lambda line: None)
    yield service
    service.close()


@pytest.fixture(scope="session")
def client(shared_service):
    """A client of the three runs."""
    return TestClient(make_app(shared_service, Access(None, True)), base_url=AT)


@pytest.fixture
def ask(client):
    """The JSON of a POST."""

    def ask_(path, status=200, **body):
        answer = client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask_


@pytest.fixture
def client_of():
    """A function that makes a client of a service."""
    return lambda service: TestClient(make_app(service, Access(None, True)), base_url=AT)


@pytest.fixture
def at_port():
    """A function that puts a service on a real port, by uvicorn in a thread, until the test ends. It returns the port
    and the server."""
    with ExitStack() as stack:

        def serve(service, access=None, **address):
            opened = stack.enter_context(bound(address.get("host", "127.0.0.1"), 0))
            port, started = opened.getsockname()[1], Event()
            config = configured(service, access or Access(None, True), Address(**address))
            server = AnnouncingServer(config, started.set)
            thread = Thread(target=server.run, kwargs={"sockets": [opened]})
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(setattr, server, "should_exit", True)
            assert started.wait(10)
            return port, server

        yield serve


@pytest.fixture
def png(digit):
    return {"name": digit.name, "content": base64.b64encode(digit.read_bytes()).decode()}
