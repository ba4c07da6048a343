"""The files of `deploy/training/` are what their readers parse, and start `regardant train` as torchrun does."""

import re
import subprocess
from pathlib import Path

import pytest
import typer.main
import yaml
from torch.distributed.run import parse_args

from regardant import cli

FOLDER = Path(__file__).parents[3] / "deploy" / "training"
SCRIPTS = ["torchrun.sh", "slurm.sbatch"]


def manifest(name):
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def words_of(script):
    """The words of the torchrun command in a shell script, as the shell gives them to the program."""
    text = (FOLDER / script).read_text(encoding="utf-8")
    command = re.search(r"torchrun (?:.*\\\n)*.*", text).group().removesuffix("&")
    given = 'recipe=multi30k-en-de run=/runs/mine head=node1 SLURM_NNODES=2 SLURM_JOB_ID=7; set --; printf "%s\\n" '
    return subprocess.run(["bash", "-euc", given + command], check=True, capture_output=True, text=True).stdout.split()


def pods(name):
    """The templates of the pods of a manifest, with the number of each."""
    spec = manifest(name)["spec"]
    if name == "pytorchjob.yaml":
        return [(one["replicas"], one["template"]["spec"]) for one in spec["pytorchReplicaSpecs"].values()]
    (job,) = spec["replicatedJobs"]
    return [(job["replicas"] * job["template"]["spec"]["parallelism"], job["template"]["spec"]["template"]["spec"])]


def commands():
    yield from ((script, words_of(script)) for script in SCRIPTS)
    for name in ("pytorchjob.yaml", "jobset.yaml"):
        yield from ((name, pod["containers"][0]["command"]) for _, pod in pods(name))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_one_of_its_shell(script):
    shell = (FOLDER / script).read_text(encoding="utf-8").splitlines()[0].removeprefix("#!")
    checked = subprocess.run([shell, "-n", FOLDER / script], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(("name", "command"), [*commands()])
def test_torchrun_takes_the_options_and_regardant_the_rest(name, command):
    program, *words = command
    assert program == "torchrun"
    asked = parse_args([word.replace("$(JOB_COMPLETION_INDEX)", "1") for word in words])
    assert asked.module and asked.training_script == "regardant"
    verb, *given = asked.training_script_args
    with typer.main.get_command(cli.app).commands[verb].make_context(verb, given) as context:
        assert (verb, context.params["recipe"]) == ("train", "multi30k-en-de")
        assert str(context.params["out"]) == "/runs/mine"


def test_a_slurm_job_has_a_task_a_machine_and_time_to_save():
    text = (FOLDER / "slurm.sbatch").read_text(encoding="utf-8")
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", text, re.MULTILINE))
    assert options["ntasks-per-node"] == "1", "torchrun starts the others of a machine"
    assert f"--nproc-per-node={options['gpus-per-node']}" in text
    signal, seconds = options["signal"].removeprefix("B:").split("@")
    assert signal == "TERM" and "trap stop TERM" in text and int(seconds) >= 60


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [("pytorchjob.yaml", "PyTorchJob", "kubeflow.org/v1"), ("jobset.yaml", "JobSet", "jobset.x-k8s.io/v1alpha2")],
)
def test_a_manifest_has_two_machines_that_share_the_run(name, kind, version):
    parsed = manifest(name)
    assert (parsed["kind"], parsed["apiVersion"]) == (kind, version)
    assert sum(count for count, _ in pods(name)) == 2
    for _, pod in pods(name):
        (container,) = pod["containers"]
        mounted = {one["name"] for one in container["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["volumes"]} == {"runs", "memory"}
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
        assert pod["terminationGracePeriodSeconds"] >= 60
    if name == "jobset.yaml":
        (job,) = parsed["spec"]["replicatedJobs"]
        first = f"{parsed['metadata']['name']}-{job['name']}-0-0.{parsed['metadata']['name']}"
        assert f"--master-addr={first}" in container["command"], "the name that JobSet gives the first pod"
    else:
        assert container["name"] == "pytorch", "the operator looks for this name"
        assert parsed["spec"]["nprocPerNode"] == "8"
