import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch import nn

from regardant.errors import RunError
from regardant.files import write_atomically
from regardant.training.checkpoints import (
    latest_checkpoint,
    load_checkpoint,
    load_into,
    load_weights,
    save_checkpoint,
    save_shards,
    save_weights,
)
from regardant.training.processes import ALONE
from regardant.training.sharded_checkpoints import is_whole

STATE = {
    "update": 3,
    "weights": {"a": torch.arange(5.0), "b": torch.ones(2, dtype=torch.bfloat16)},
    "cursor": [1, (2, None)],
}
SAVES_WITHOUT_END = """
import sys, torch
from pathlib import Path
from regardant.training.checkpoints import save_checkpoint
for update in range(1, 10**6):
    save_checkpoint(Path(sys.argv[1]), {"weights": torch.full((8_000_000,), update)}, update, keep=2)
"""


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def tied_model():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 3), nn.Linear(3, 5))
    model[2].weight = model[0].weight
    return model


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    path = save_checkpoint(tmp_path, STATE, update=3, keep=2)
    assert path == tmp_path / "checkpoints" / "update-00000003.pt" == latest_checkpoint(tmp_path)
    torch.testing.assert_close(load_checkpoint(path), STATE, rtol=0, atol=0)


def test_only_the_newest_checkpoints_stay(tmp_path):
    for update in (5, 10, 99, 100):
        save_checkpoint(tmp_path, STATE, update, keep=2)
    assert files_in(tmp_path / "checkpoints") == ["update-00000099.pt", "update-00000100.pt"]


def test_a_given_up_continuation_does_not_outlive_the_next_save(tmp_path):
    for update in (1, 2, 3):
        save_checkpoint(tmp_path, STATE, update, keep=3)
    truncate(tmp_path / "checkpoints" / "update-00000003.pt")
    save_checkpoint(tmp_path, STATE, 2, keep=1)
    assert files_in(tmp_path / "checkpoints") == ["update-00000002.pt"]


def test_weights_that_a_kill_left_half_written_are_deleted_by_the_next_saving(tmp_path):
    (tmp_path / "model.safetensors.1f.part").write_bytes(b"left by a kill")
    save_weights(tmp_path / "model.safetensors", {"a": torch.ones(1)}, {})
    assert files_in(tmp_path) == ["model.safetensors"]


def test_a_run_without_checkpoints_has_no_latest(tmp_path):
    assert latest_checkpoint(tmp_path) is None
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "update-00000001.pt.part").write_bytes(b"left by a kill")
    assert latest_checkpoint(tmp_path) is None


def one_wrong_bit(path):
    content = bytearray(path.read_bytes())
    content[content.index(torch.arange(5.0).numpy().tobytes())] ^= 1
    path.write_bytes(content)


def bad_name(path):
    """In the archive's directory, whose names are UTF-8."""
    content = bytearray(path.read_bytes())
    at = content.rindex(b"data.pkl")
    content[at - 46 + 9] |= 8  # the flag of UTF-8 names
    content[at] = 0xFF
    path.write_bytes(content)


def no_mapping(path):
    torch.save([1, 2], path)


@pytest.mark.parametrize("damage", [truncate, one_wrong_bit, bad_name, no_mapping, lambda path: path.write_bytes(b"")])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(damage, tmp_path):
    older, newer = (save_checkpoint(tmp_path, STATE, update, keep=2) for update in (1, 2))
    damage(newer)
    assert latest_checkpoint(tmp_path) == older


def test_a_run_with_damaged_checkpoints_alone_does_not_start_over(tmp_path):
    truncate(save_checkpoint(tmp_path, STATE, 1, keep=2))
    with pytest.raises(RunError, match="none of the 1 checkpoints can be read; restore one"):
        latest_checkpoint(tmp_path)


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, {"schedule": os.system}, 1, keep=1)
    with pytest.raises(RunError, match="not a complete checkpoint") as error:
        load_checkpoint(path)
    assert "\n" not in str(error.value)


def test_a_kill_in_the_middle_of_saving_leaves_a_loadable_folder(tmp_path):
    saver = subprocess.Popen([sys.executable, "-c", SAVES_WITHOUT_END, str(tmp_path)])
    folder, half_written = tmp_path / "checkpoints", False
    try:
        deadline = time.monotonic() + 60
        while not half_written:
            time.sleep(0.003)
            assert saver.poll() is None and time.monotonic() < deadline
            saver.send_signal(signal.SIGSTOP)  # so that the look at the folder is not out of date
            os.waitpid(saver.pid, os.WUNTRACED)
            half_written = any(folder.glob("*.pt")) and any(part.stat().st_size for part in folder.glob("*.part"))
            if not half_written:
                saver.send_signal(signal.SIGCONT)
    finally:
        saver.kill()
        saver.wait()
    path = latest_checkpoint(tmp_path)
    weights = load_checkpoint(path)["weights"]
    assert (weights == int(path.stem.removeprefix("update-"))).all()
    save_checkpoint(tmp_path, STATE, 10**7, keep=1)
    assert files_in(folder) == ["update-10000000.pt"]  # what the kill left is gone


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_folder_of_shards_that_a_kill_left_is_deleted_by_the_next_saving(tmp_path):
    left = tmp_path / "checkpoints" / "update-00000001.part"
    for save in (
        lambda: save_checkpoint(tmp_path, STATE, 2, keep=1),
        lambda: save_shards(tmp_path, STATE, 3, 1, ALONE),
    ):
        left.mkdir(parents=True)
        (left / "shards.safetensors").write_bytes(b"half of it")
        save()
        assert not left.exists()
    assert files_in(tmp_path / "checkpoints") == ["update-00000003"]


class Killed(BaseException):
    """The process ends."""


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_shards_of_an_update_that_is_saved_twice_are_complete_at_any_time(tmp_path, monkeypatch):
    save_shards(tmp_path, STATE, 1, 1, ALONE)
    folder, replace, complete = tmp_path / "checkpoints", os.replace, []

    def replacing(source, target):
        complete.append(sum(is_whole(one) for one in folder.iterdir()))
        replace(source, target)

    def deleting(path, **options):
        (path / "state.pt").unlink()
        raise Killed

    with monkeypatch.context() as killing:
        killing.setattr(os, "replace", replacing)
        killing.setattr(shutil, "rmtree", deleting)
        with pytest.raises(Killed):
            save_shards(tmp_path, STATE | {"update": 4}, 1, 1, ALONE)
    assert complete[-2:] == [2, 2], "the one before and the new one"
    assert latest_checkpoint(tmp_path) == folder / "update-00000001"
    assert load_checkpoint(folder / "update-00000001")["update"] == 4
    assert len(files_in(folder)) == 2
    save_shards(tmp_path, STATE, 1, 1, ALONE)
    assert files_in(folder) == ["update-00000001"]


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for write in (
        lambda run: write_atomically(run / "run.yaml", "x"),
        lambda run: save_checkpoint(run, STATE, 1, keep=1),
        lambda run: save_weights(run / "model.safetensors", {"a": torch.ones(1)}, {}),
    ):
        with pytest.raises(RunError, match=r"cannot write .*is the disk full or read-only") as error:
            write(tmp_path / "file")
        assert "\n" not in str(error.value)


def test_a_full_disk_keeps_the_checkpoint_that_was_there(tmp_path):
    path = save_checkpoint(tmp_path, STATE, 1, keep=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(RunError, match="cannot write"):
            save_checkpoint(tmp_path, {"weights": torch.zeros(100_000)}, 2, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files_in(path.parent) == [path.name]


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path):
    model, path = tied_model(), tmp_path / "model.safetensors"
    save_weights(path, model.state_dict(), {"update": "7"})
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    assert sorted(header) == ["0.weight", "1.bias", "1.weight", "2.bias", "__metadata__"]
    assert json.loads(header["__metadata__"]["regardant"]) == {"update": "7", "tied": {"2.weight": "0.weight"}}
    weights = load_weights(path)
    assert weights["2.weight"] is weights["0.weight"]
    torch.testing.assert_close(weights, dict(model.state_dict()), rtol=0, atol=0)


def test_weights_load_into_a_model_and_keep_its_ties(tmp_path):
    model, other, path = tied_model(), tied_model(), tmp_path / "model.safetensors"
    save_weights(path, model.state_dict(), {})
    load_into(other, path)
    assert other[2].weight is other[0].weight
    torch.testing.assert_close(dict(other.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


def test_views_into_one_memory_are_stored_too(tmp_path):
    whole, path = torch.arange(12.0).view(3, 4), tmp_path / "model.safetensors"
    weights = {"whole": whole, "row": whole[0], "transposed": whole.T, "none": whole[:0], "nothing": whole[:0]}
    save_weights(path, weights, {})
    torch.testing.assert_close(load_weights(path), weights, rtol=0, atol=0, check_stride=False)


def test_equal_weights_are_equal_files(tmp_path):
    model, files = tied_model(), set()
    for number in range(8):
        path = tmp_path / f"{number}.safetensors"
        save_weights(path, model.state_dict(), {"update": "7", "version": "1", "metric": "bleu"})
        files.add(path.read_bytes())
    assert len(files) == 1


def test_weights_that_do_not_fit_are_named_and_the_model_is_untouched(tmp_path):
    path = tmp_path / "model.safetensors"
    save_weights(path, {"0.weight": torch.ones(2, 2), "spare": torch.ones(1)}, {})
    model = nn.Sequential(nn.Linear(3, 3))
    before = model[0].weight.clone()
    with pytest.raises(RunError) as error:
        load_into(model, path)
    told = "(missing: 0.bias; unexpected: spare; of another shape: 0.weight)"
    assert told in str(error.value) and "\n" not in str(error.value)
    assert torch.equal(model[0].weight, before)


def test_many_missing_weights_are_counted(tmp_path):
    path = tmp_path / "model.safetensors"
    save_weights(path, {"spare": torch.ones(1)}, {})
    with pytest.raises(RunError, match=r"missing: 0.weight, 1.weight, 1.bias and 2 more; unexpected: spare\)"):
        load_into(tied_model(), path)


def test_truncated_or_absent_weights_are_one_line(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(RunError, match="is not there"):
        load_into(tied_model(), path)
    save_weights(path, tied_model().state_dict(), {})
    truncate(path)
    with pytest.raises(RunError, match="not a complete safetensors file") as error:
        load_into(tied_model(), path)
    assert "\n" not in str(error.value)


def with_header(path, change):
    """Change the JSON at the start of a safetensors file."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    change(header)
    changed = json.dumps(header).encode()
    path.write_bytes(len(changed).to_bytes(8, "little") + changed + content[end:])


HEADERS = {
    "metadata that is no JSON": lambda header: header["__metadata__"].update(regardant="{"),
    "metadata that is a list": lambda header: header["__metadata__"].update(regardant="[]"),
    "ties that are a list": lambda header: header["__metadata__"].update(regardant='{"tied": [1]}'),
    "a tie to nothing": lambda header: header["__metadata__"].update(regardant='{"tied": {"2.weight": "x"}}'),
    "an unknown type": lambda header: header["1.bias"].update(dtype="F31"),
    "a shape of another size": lambda header: header["1.bias"].update(shape=[2]),
    "a shape of texts": lambda header: header["1.bias"].update(shape=["3"]),
    "offsets beyond the end": lambda header: header["1.bias"].update(data_offsets=[0, 10**12]),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_damaged_header_is_one_line(name, tmp_path):
    path = tmp_path / "model.safetensors"
    save_weights(path, tied_model().state_dict(), {})
    with_header(path, HEADERS[name])
    with pytest.raises(RunError, match="not a complete safetensors file") as error:
        load_into(tied_model(), path)
    assert "\n" not in str(error.value)


def test_weights_of_another_type_do_not_fit(tmp_path):
    """An integer of the same size would be read as another number."""
    model, path = tied_model(), tmp_path / "model.safetensors"
    save_weights(path, model.state_dict(), {})
    with_header(path, lambda header: header["1.bias"].update(dtype="I32"))
    with pytest.raises(RunError, match=r"of another type: 1\.bias"):
        load_into(model, path)
