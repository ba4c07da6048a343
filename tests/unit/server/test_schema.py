"""Requests drawn from the server's own description are answered as it says, and never by a fault of the server."""

import json

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance

from regardant.server.limits import Limits

SHORT, LONG = 12, 250
"""Requests to each address, valid ones and others."""

KNOWN = {200, 400, 404, 405, 413, 422, 429}
"""Statuses of a server that is not about to end."""


@pytest.fixture
def described(serving, at_port):
    """The description of a server with three runs, as schemathesis reads it."""
    service = serving("demo", "text", "digits", limits=Limits(max_wait_ms=0, max_tokens=20, max_characters=200))
    port, _ = at_port(service)
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    return service, [one.ok() for one in schema.get_all_operations()]


def asked(operation, requests, mode):
    """Send requests to an address, and return the statuses of the answers."""
    statuses = []

    @settings(max_examples=requests, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @hypothesis.seed(1)
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        if isinstance(case.body, dict) and case.body.get("run") is None and "demo" in str(case.body):
            case.body["run"] = "demo"
        answer = case.call()
        statuses.append(answer.status_code)
        case.validate_response(answer, checks=[not_a_server_error, response_schema_conformance])
        assert answer.status_code in KNOWN, answer.text
        if answer.status_code >= 400:
            assert list(json.loads(answer.text)) == ["error"]

    ask()
    return statuses


@pytest.mark.parametrize("requests", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_no_request_of_the_description_is_a_fault(described, requests):
    service, operations = described
    assert {one.path for one in operations} >= {"/v1/translate", "/v1/predict", "/v1/generate", "/v1/inspect"}
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.POSITIVE or operation.method == "post":
                asked(operation, requests, mode)
    assert not [line for line in service.lines if json.loads(line)["event"] == "fault"]
    assert service.alive == ["demo", "text", "digits"]
