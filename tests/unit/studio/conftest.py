import pytest
from fastapi.testclient import TestClient

from regardant.studio.app import make_app

AT = "http://localhost:8421"


@pytest.fixture(scope="session")
def studio(trained):
    """A client of the studio over the run of TINY, and that run's name."""
    run = trained()
    return TestClient(make_app([run.folder]), base_url=AT, raise_server_exceptions=False), run.folder.as_posix()


@pytest.fixture
def ask(studio):
    """The JSON of a POST about a sentence."""
    client, name = studio

    def ask_(path, status=200, **body):
        answer = client.post(f"/api/{path}", json={"run": name, "text": "The old judge sees the small cat.", **body})
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask_
