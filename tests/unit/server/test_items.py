"""Items of requests are what a command line gives, and no path of a request is opened."""

import base64
import json
from types import SimpleNamespace

import pytest

from regardant.server.items import read_items
from regardant.server.limits import Limits, Refusal


def test_a_file_that_is_compressed_under_another_name_is_refused(tmp_path):
    config = SimpleNamespace(modality=None, suffixes=(".wav", ".flac"))

    def read(name, content):
        item = {"name": name, "content": base64.b64encode(content).decode()}
        return read_items(config, [item], tmp_path / str(len(content)), Limits(), "items[{}]")

    assert read("a.wav", b"RIFF....")[0].endswith("/0/a.wav")
    for name, content in (("a.wav", b"fLaC"), ("a.flac", b"fLaC2"), ("../a.flac.wav", b"fLaC34")):
        with pytest.raises(
            Refusal, match=r"items\[0\] is no file: give an object with a `name` that ends in \.wav, and"
        ):
            read(name, content)


def test_a_file_keeps_to_its_folder(tmp_path):
    config = SimpleNamespace(modality=None, suffixes=(".wav",))
    item = {"name": "../../a.wav", "content": base64.b64encode(b"RIFF").decode()}
    assert read_items(config, [item], tmp_path, Limits(), "items[{}]") == [str(tmp_path / "0" / "a.wav")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("\ud800.wav", r"the name of items\[0\] has half of a character \(a lone surrogate\): give another name"),
        ("\udc80.wav", "half of a character"),
        ("\u732b" * 86 + ".wav", r"the name of items\[0\] has 262 bytes, allowed are 255: shorten it"),
    ],
    ids=["half of a character", "a byte that is no text", "too long"],
)
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name, said):
    config = SimpleNamespace(modality=None, suffixes=(".wav",))
    item = {"name": name, "content": base64.b64encode(b"RIFF").decode()}
    with pytest.raises(Refusal, match=said) as refused:
        read_items(config, [item], tmp_path, Limits(), "items[{}]")
    assert refused.value.status == 422
    item["name"] = "\u732b" * 83 + ".wav"
    (path,) = read_items(config, [item], tmp_path, Limits(), "items[{}]")
    assert path == str(tmp_path / "0" / item["name"])


def test_items_of_several_parts_hold_their_files(tmp_path, png):
    parts = {"question": SimpleNamespace(suffixes=()), "image": SimpleNamespace(suffixes=(".png",))}
    config = SimpleNamespace(modality=SimpleNamespace(parts=parts), suffixes=())
    (found,) = read_items(config, [{"question": "Which?", "image": png}], tmp_path, Limits(), "items[{}]")
    assert json.loads(found) == {"question": "Which?", "image": str(tmp_path / "0" / "image" / "digit.png")}
    for wrong in ({"question": "Which?", "image": "/etc/passwd"}, {"question": "Which?"}, "Which?"):
        with pytest.raises(
            Refusal, match=r"items\[0\](\.image is no file| is no item of the parts question, image): give"
        ):
            read_items(config, [wrong], tmp_path, Limits(), "items[{}]")


def test_an_object_is_the_item_that_a_command_line_gives_as_json(tmp_path):
    config, question = SimpleNamespace(modality=None, suffixes=()), {"question": "Who?", "context": "The cat."}
    assert read_items(config, [question], tmp_path, Limits(), "items[{}]") == [json.dumps(question)]
