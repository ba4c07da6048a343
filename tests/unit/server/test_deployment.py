"""The files of `deploy/` are what their readers parse, and agree with the server: ports, addresses, user, signals."""

import configparser
import io
import json
import shlex
from pathlib import Path

import typer.main
import yaml
from dockerfile_parse import DockerfileParser

from regardant import cli
from regardant.server.admission import KEY_VARIABLE, WITHOUT_KEY
from regardant.server.limits import Limits

DEPLOY = Path(__file__).parents[3] / "deploy"


def dockerfile():
    return DockerfileParser(fileobj=io.BytesIO((DEPLOY / "Dockerfile").read_bytes()))


def options_are_known(words):
    """Whether `regardant serve` takes the options of a command."""
    serve = typer.main.get_command(cli.app).commands["serve"]
    known = {name for parameter in serve.params for name in parameter.opts}
    return {word for word in words if word.startswith("--")} <= known


def test_the_image_serves_as_a_user_without_rights():
    parsed = dockerfile()
    last = {}
    for step in parsed.structure:
        if step["instruction"] == "FROM":
            last = {}
        last.setdefault(step["instruction"], []).append(step["value"])
    assert len(parsed.parent_images) == 2 and parsed.parent_images[0] == parsed.baseimage, "the same Python runs it"
    assert last["USER"] == ["10001:10001"] and last["STOPSIGNAL"] == ["SIGTERM"] and last["EXPOSE"] == ["8000"]
    program, verb, *words = json.loads(last["ENTRYPOINT"][0])
    assert (program, verb) == ("regardant", "serve") and options_are_known(words)
    assert words[words.index("--port") + 1] == "8000" and words[words.index("--host") + 1] == "0.0.0.0"
    assert "http://127.0.0.1:8000/health" in last["HEALTHCHECK"][0]


def test_the_image_has_the_cpu_build_of_torch_and_pinned_versions():
    parsed = dockerfile()
    (install,) = [step["value"] for step in parsed.structure if "pip install" in step["value"]]
    first, second = install.split("&&")[1:]
    assert "--no-deps --index-url https://download.pytorch.org/whl/cpu torch" in first and "'.[serve]'" in second
    assert all("--constraint constraints.txt" in one for one in (first, second))
    copied = {word for step in parsed.structure if step["instruction"] == "COPY" for word in step["value"].split()}
    ignored = (DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored[1:]}
    assert sent < copied and all((DEPLOY.parent / name).exists() for name in sent)


def test_the_unit_reloads_and_stops_as_the_server_does():
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "regardant.service", encoding="utf-8")
    service = unit["Service"]
    program, verb, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/regardant") and verb == "serve" and options_are_known(words)
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID" and service["KillSignal"] == "SIGTERM"
    assert int(service["TimeoutStopSec"]) > Limits().timeout
    assert int(service["LimitNOFILE"]) > Limits().connections
    assert (service["DynamicUser"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "yes", "strict")
    key = words[words.index("--api-key-file") + 1].rpartition("/")[2]
    assert service["LoadCredential"].startswith(f"{key}:")


def test_the_deployment_probes_limits_and_scales():
    deployment, service, scaler = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    assert [one["kind"] for one in (deployment, service, scaler)] == [
        "Deployment",
        "Service",
        "HorizontalPodAutoscaler",
    ]
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: one["path"] for kind, one in probes.items()} == {
        "startup": "/health",
        "liveness": "/health",
        "readiness": "/ready",
    }
    assert {one["path"] for one in probes.values()} <= WITHOUT_KEY
    assert {one["port"] for one in probes.values()} == {container["ports"][0]["name"]}
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert container["env"][0]["name"] == KEY_VARIABLE
    assert set(container["resources"]["limits"]) == set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert pod["spec"]["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > pause + Limits().timeout
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert scaler["spec"]["minReplicas"] < scaler["spec"]["maxReplicas"]
