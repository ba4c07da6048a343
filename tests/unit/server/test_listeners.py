"""Servers as users start them listen on this machine alone."""

import sys

import pytest

from tests.findings.program import LOOPBACK, family, listening, port_of, running


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("verb", ["studio", "serve"])
def test_without_a_host_a_server_listens_on_loopback_alone(trained, verb):
    with running(verb, trained().folder, "--port", 0) as server:
        port_of(server)
        found = listening(family(server.pid))
        assert found and found <= LOOPBACK
