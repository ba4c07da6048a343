import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant import run
from regardant.config import dump
from regardant.errors import RunError
from regardant.training import processes
from regardant.training.checkpoints import load_weights
from regardant.training.processes import ALONE, started
from tests.findings.program import LOOPBACK, listening

JOINED = """import sys
import torch
from torch import nn
from regardant.training.processes import joined
with joined() as group:
"""


def joining(then):
    """The command of a process that joins, and then does something with its `group`."""
    return [sys.executable, "-c", JOINED + textwrap.indent(then, "    ")]


def silent(line):
    pass


@pytest.fixture
def parameters():
    return list(nn.Linear(2, 1).parameters())


def test_gradients_and_sums_are_added_up_in_all(parameters):
    theirs = "weight, bias = nn.Linear(2, 1).parameters()\nweight.grad = torch.tensor([[1.0, 2.0]])\n"
    with started(2, joining(theirs + "group.add_up([weight, bias], torch.tensor(0.5))\n")) as group:
        assert (group.leads, group.rank, group.size, len(group.others)) == (True, 0, 2, 1)
        weight, bias = parameters
        bias.grad = torch.tensor([3.0])
        total = torch.tensor(1.0)
        group.add_up(parameters, total)
    assert_close(weight.grad, torch.tensor([[1.0, 2.0]]))
    assert_close(bias.grad, torch.tensor([3.0]))
    assert float(total) == 1.5


def test_all_agree_with_the_first():
    asserted = "assert group.agree(9.0, 9.0) == [1.0, 0.25], 'it did not agree'\n"
    with started(2, joining(asserted)) as group:
        assert group.agree(True, 0.25) == [1.0, 0.25]


def test_the_numbers_of_all_are_gathered_in_all():
    asserted = "assert group.gathered([3.0, 4.0]).tolist() == [[1.0, 2.0], [3.0, 4.0]], 'another order'\n"
    with started(2, joining(asserted)) as group:
        assert group.gathered([1, 2]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert ALONE.gathered([1, 2]).tolist() == [[1.0, 2.0]]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are listed on Linux only")
def test_listening_finds_a_socket_open_to_the_network():
    with socket.create_server(("0.0.0.0", 0)):
        assert listening([os.getpid()]) == {"00000000"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are listed on Linux only")
def test_processes_listen_on_loopback_alone_and_save_when_all_are_told_to_end(tiny_text_config, tmp_path):
    """A service manager sends SIGTERM to all processes of a training."""
    recipe = tmp_path / "recipe.yaml"
    asked = ("training.processes=2", "training.max_updates=1000000")
    recipe.write_text(dump(tiny_text_config(*asked)), encoding="utf-8")
    command = [sys.executable, "-m", "regardant", "train", recipe, "--out", tmp_path / "run"]
    # Where the name of the machine is that of the loopback interface, gloo listens there anyway: name another.
    others = [name for _, name in socket.if_nameindex() if is_up(name)]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": others[0] if others else "", "OMP_NUM_THREADS": "2"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as leader:
        try:
            events = tmp_path / "run" / "metrics.jsonl"
            wait_until(lambda: leader.poll() is not None or (events.is_file() and events.stat().st_size))
            assert leader.poll() is None, leader.stderr.read().decode()
            (follower,) = Path(f"/proc/{leader.pid}/task/{leader.pid}/children").read_text().split()
            found = [listening([process]) for process in (leader.pid, follower)]
            for process in (int(follower), leader.pid):
                os.kill(process, signal.SIGTERM)
            told = leader.stderr.read().decode()
            assert leader.wait(60) == 130, told
        finally:
            leader.kill()
    assert "run the same command again to resume" in told and "Traceback" not in told
    assert list((tmp_path / "run" / "checkpoints").glob("*.pt"))
    assert all(found), "processes exchange gradients over sockets"
    assert found[0] | found[1] <= LOOPBACK


def is_up(interface):
    return Path(f"/sys/class/net/{interface}/operstate").read_text().strip() == "up"  # of the loopback: unknown


def wait_until(done, seconds=90.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def test_the_store_is_in_a_folder_of_its_owner_alone(tmp_path):
    found = "from os import environ, stat\nfrom pathlib import Path\nfolder = Path(environ['REGARDANT_STORE']).parent\n"
    kept = tmp_path / "found"
    written = f"Path({str(kept)!r}).write_text(f'{{stat(folder).st_mode & 0o777:o}} {{folder}}')\n"
    with started(2, joining(found + written + "group.agree(1.0)")) as group:
        group.agree(1.0)
    mode, folder = kept.read_text().split(maxsplit=1)
    assert mode == "700"
    assert not Path(folder).exists()


def test_alone_nothing_is_shared(parameters):
    ALONE.add_up(parameters, torch.tensor(1.0))
    assert [parameter.grad for parameter in parameters] == [None, None]
    assert ALONE.agree(1.0, 2.5) == [1.0, 2.5]
    with started(1, ["never started"]) as group:
        assert group is ALONE


def test_threads_are_divided_and_come_back():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with started(2, joining("group.agree(1.0)")) as group:
            group.divide_threads()
            assert torch.get_num_threads() == 2
            with group.undivided():
                assert torch.get_num_threads() == 4
            assert torch.get_num_threads() == 2
            group.agree(1.0)
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    "command", [[sys.executable, "-c", "raise SystemExit('no room')"], joining("raise SystemExit('no room')")]
)
def test_one_that_ends_early_ends_the_training_in_a_line(command):
    told = r"^rank 1 of 2 ended \(no room\): start the command again to resume$"
    with pytest.raises(RunError, match=told), started(2, command) as group:
        group.agree(1.0)
        group.agree(1.0)


def test_a_killed_process_is_named_with_its_signal_and_soon():
    then = "import time\ngroup.agree(1.0)\ntime.sleep(600)\n"
    start = time.monotonic()
    with (
        pytest.raises(RunError, match=r"^rank 2 of 3 ended \(signal 9\): start the command again to resume$"),
        started(3, joining(then)) as group,
    ):
        group.agree(1.0)
        os.kill(group.others[1], signal.SIGKILL)
        group.wait_for_all()
    assert time.monotonic() - start < 60


@pytest.mark.slow
def test_a_process_that_does_not_answer_in_time_is_named(monkeypatch):
    """As one does whose machine is gone: its connections stay open, and nothing comes."""
    monkeypatch.setattr(processes, "TIMEOUT", timedelta(seconds=2))
    then = "import os, signal\ngroup.agree(1.0)\nos.kill(os.getpid(), signal.SIGSTOP)\n"
    with (
        pytest.raises(RunError, match=r"^rank 1 of 2 ended or did not answer: start the command again to resume$"),
        started(2, joining(then)) as group,
    ):
        group.agree(1.0)
        group.add_up([], torch.zeros(()))


def test_an_error_of_its_own_is_told_as_it_is():
    with pytest.raises(RuntimeError, match=r"^a shape$"), started(2, joining("group.agree(1.0)")) as group:
        group.agree(1.0)
        raise RuntimeError("a shape")


def test_an_error_of_all_is_told_as_it_is():
    """As one of a damaged checkpoint, which every process reads."""
    with pytest.raises(RunError, match=r"^train anew$"), started(2, joining("raise SystemExit('train anew')")) as group:
        while os.waitid(os.P_PID, group.others[0], os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(0.05)
        raise RunError("train anew")


def test_the_others_end_where_the_first_fails():
    with pytest.raises(ZeroDivisionError), started(2, joining("group.agree(1.0)")) as group:
        (other,) = group.others
        raise ZeroDivisionError
    with pytest.raises(OSError):
        os.kill(other, signal.SIGTERM)


LEADER = """import sys
from regardant.training.processes import started
follower = [sys.executable, "-m", "regardant.run.follower", *sys.argv[1:]]
with started(2, follower):
    pass
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are listed on Linux only")
def test_a_follower_ends_with_a_leader_that_is_killed_before_they_meet(trained_on_text):
    """Else it would wait for rank 0 for a day."""
    command = [sys.executable, "-c", LEADER, str(trained_on_text().folder)]
    with subprocess.Popen(command) as leader:
        children = Path(f"/proc/{leader.pid}/task/{leader.pid}/children")
        try:
            wait_until(lambda: children.read_text())
            (follower,) = map(int, children.read_text().split())
        finally:
            leader.kill()
    try:
        wait_until(lambda: not is_running(follower), seconds=30)
        assert not is_running(follower)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(follower, signal.SIGKILL)


def is_running(process):
    """Whether a process runs. One that has ended may still be listed as a zombie."""
    stat = Path(f"/proc/{process}/stat")
    return stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.parametrize(
    ("accumulate", "batch_tokens"),
    [pytest.param(1, 250, id="of many rows", marks=pytest.mark.slow), pytest.param(2, 48, id="of few rows")],
)
def test_two_processes_train_as_one_does(tiny_config, tmp_path, accumulate, batch_tokens):
    """Without dropout, which alone is drawn; and with an eps above the rounding, of which Adam would make steps."""
    weights = []
    for count in (1, 2):
        folder = tmp_path / str(count)
        alike = ("training.max_updates=6", f"training.accumulate={accumulate}", "model.dropout=0")
        asked = ("training.optimizer.eps=0.01", f"training.batch_tokens={batch_tokens}")
        run.train(tiny_config(*alike, *asked, f"training.processes={count}"), folder, silent)
        weights.append(load_weights(folder / "model.safetensors"))
    one, two = weights
    assert one.keys() == two.keys()
    for name in one:
        assert_close(two[name], one[name], rtol=0, atol=1e-5, msg=name)
    events = [
        [json.loads(line) for line in (tmp_path / count / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        for count in "12"
    ]
    for before, after in zip(*events, strict=True):
        assert before["event"] == after["event"]
        if before["event"] != "observation":
            assert after["loss"] == pytest.approx(before["loss"], rel=1e-4)


@pytest.mark.slow
def test_two_processes_return_after_a_spike_as_one_does(tiny_config, tmp_path, capsys):
    """A follower that kept its weights would send gradients of other weights from then on."""
    steep = "training.schedule={kind: cosine, learning_rate: 1.5, warmup_steps: 15}"
    asked = ("model.dropout=0", "training.max_updates=40", "training.spike_factor=1.05", "training.optimizer.eps=0.01")
    weights, returns = [], []
    for count in (1, 2):
        folder = tmp_path / str(count)
        run.train(tiny_config(*asked, steep, f"training.processes={count}"), folder, silent)
        told = [line for line in capsys.readouterr().err.splitlines() if "returned to the weights" in line]
        returns.append([line.split(":")[0] for line in told])
        weights.append(load_weights(folder / "model.safetensors"))
    assert returns == [["update 20", "update 30"]] * 2
    one, two = weights
    for name in one:
        assert_close(two[name], one[name], rtol=0, atol=1e-4, msg=name)  # steps of 1.5 enlarge rounding


@pytest.mark.slow
def test_two_processes_that_were_interrupted_end_bit_equal_to_two_that_were_not(tiny_text_config, tmp_path):
    asked = (
        "training.processes=2",
        "model.dropout=0.3",
        "training.schedule={kind: constant, learning_rate: 1.0e-2, warmup_steps: 2}",
    )
    for folder, updates in ((tmp_path / "at once", [7]), (tmp_path / "in parts", [4, 7])):
        for many in updates:
            run.train(tiny_text_config(*asked, f"training.max_updates={many}"), folder, silent)
    at_once, in_parts = (load_weights(tmp_path / name / "model.safetensors") for name in ("at once", "in parts"))
    assert all(torch.equal(at_once[name], in_parts[name]) for name in at_once)
