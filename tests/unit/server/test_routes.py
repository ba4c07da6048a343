"""What each address answers is what the run answers, and every mistake is one line with its status."""

import base64
import io
import json
import math

import pytest
from PIL import Image

from regardant.errors import ConfigError
from regardant.server.bodies import SENTENCE
from regardant.server.inspecting import num_weights
from regardant.server.limits import Limits
from regardant.tasks.base import Prediction
from regardant.tasks.translation.use.engines import Engines

OTHER = "A small cat sees the judge."
FORCED = "Le vieux juge voit le petit chat ."


def png_of(image):
    """A picture as a PNG file in base64."""
    written = io.BytesIO()
    image.save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()


def events(text):
    """The (name, content) of server-sent events."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((lines.get("event"), json.loads(lines["data"])))
    return found


def test_translations_are_those_of_the_run(ask, trained):
    found = ask("/v1/translate", run="demo", texts=[SENTENCE, OTHER, ""], beam_size=3, nbest=2)
    assert found["run"] == "demo"
    for one, own in zip(
        found["translations"], trained().translate([SENTENCE, OTHER, ""], beam_size=3, nbest=2), strict=True
    ):
        assert (one["text"], one["notes"]) == (own.text, own.notes)
        assert [candidate["text"] for candidate in one["candidates"]] == [each.text for each in own.candidates]
        assert one["score"] == pytest.approx(own.score, abs=1e-4)


def test_predictions_are_those_of_the_run(ask, trained, trained_on_text, trained_on_digits, digit, png):
    (label,) = ask("/v1/predict", run="digits", items=[png])["predictions"]
    (own,) = trained_on_digits().predict([str(digit)])
    assert label == {**own.as_dict(), "item": f"0/{digit.name}"} | {
        "probabilities": pytest.approx(own.details["probabilities"])
    }
    assert (
        ask("/v1/predict", run="demo", items=[SENTENCE])["predictions"][0]["answer"]
        == trained().translate([SENTENCE])[0].text
    )
    found = ask("/v1/predict", run="text", items=["the ", "a "])["predictions"]
    own = [trained_on_text().generate(prompt, max_tokens=30)[0] for prompt in ("the ", "a ")]  # the server's limit
    assert [one["answer"] for one in found] == own


def test_scores_are_those_of_the_run(ask, trained, trained_on_text):
    (found,) = ask("/v1/score", run="demo", items=[SENTENCE], targets=[FORCED])["scores"]
    assert found["log_probability"] == pytest.approx(trained().score([SENTENCE], [FORCED])[0], abs=1e-3)
    (found,) = ask("/v1/score", run="text", items=["the old cat"])["scores"]
    assert found == pytest.approx(trained_on_text().score("the old cat").as_dict())


def test_an_inspection_is_that_of_the_run(ask, trained):
    found = ask("/v1/inspect", run="demo", item=SENTENCE, target=FORCED)
    own = trained().inspect(SENTENCE, FORCED).as_dict()
    assert found["inputs"].keys() == own["inputs"].keys() and found["places"] == own["places"]
    assert found["attention"][0]["weights"][0][0][0] == pytest.approx(own["attention"][0]["weights"][0][0][0], abs=1e-5)


def test_a_file_is_named_as_the_request_names_it(ask, png):
    assert ask("/v1/inspect", run="digits", item=png)["item"] == "0/digit.png"
    assert ask("/v1/inspect", 422, run="demo", item=" ")["error"] == "item is blank: give a text"
    broken = {**png, "content": base64.b64encode(b"no picture").decode()}
    line = ask("/v1/predict", 422, run="digits", items=[broken])["error"]
    assert line.startswith("0/digit.png") and "regardant-" not in line


def test_a_text_is_generated_a_token_at_a_time(client, trained_on_text):
    asked = {"run": "text", "prompt": "the ", "max_tokens": 12, "seed": 3, "temperature": 0.8}
    answer = client.post("/v1/generate", json=asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *pieces, (name, last) = events(answer.text)
    (own,) = trained_on_text().generate("the ", max_tokens=12, seed=3, temperature=0.8)
    assert "".join(content["text"] for _, content in pieces) == own
    assert len(pieces) == 12 and (name, last) == ("end", {"characters": 12})


def test_the_recipe_s_length_is_cut_to_the_limit(client):
    answer = client.post("/v1/generate", json={"run": "text", "prompt": "the "})
    assert len(events(answer.text)) == 30 + 1


def test_runs_are_listed(client):
    assert client.get("/v1/runs").json()[1:] == [
        {"run": "text", "task": "language_modelling", "verbs": ["generate", "predict"], "files": []},
        {"run": "digits", "task": "classification", "verbs": ["predict"], "files": [".png", ".jpg", ".jpeg", ".npy"]},
    ]


LONG = "a" * 81
LARGE = png_of(Image.new("1", (3000, 3000)))
TEXTS = {"run": "demo", "texts": [SENTENCE]}
MISTAKES = {
    "no run": ("translate", {"texts": ["a"]}, 422, "no run was given: name one of demo, text, digits as `run`"),
    "an unknown run": (
        "translate",
        {**TEXTS, "run": "../demo"},
        404,
        "there is no run '../demo' here: name one of demo",
    ),
    "a verb of other runs": (
        "translate",
        {**TEXTS, "run": "text"},
        422,
        "which has no translate: it has generate, predict",
    ),
    "no texts": ("translate", {"run": "demo"}, 422, "texts: field required"),
    "an empty list": ("translate", {**TEXTS, "texts": []}, 422, "texts: list should have at least 1 item"),
    "too many texts": (
        "translate",
        {**TEXTS, "texts": ["a"] * 5},
        422,
        "texts has 5 entries, allowed are 4: send several",
    ),
    "a long text": (
        "translate",
        {**TEXTS, "texts": ["a", LONG]},
        422,
        "texts[1] has 81 characters, allowed are 80: shorten",
    ),
    "a wide beam": ("translate", {**TEXTS, "beam_size": 4}, 422, "beam_size is 4, allowed are up to 3: lower it"),
    "many translations": ("translate", {**TEXTS, "nbest": 4}, 422, "nbest is 4, allowed are up to 3: lower it"),
    "a beam too narrow": (
        "translate",
        {**TEXTS, "nbest": 3, "beam_size": 2},
        422,
        "nbest (3) must be at most beam_size (2)",
    ),
    "an unknown field": (
        "translate",
        {**TEXTS, "beams": 2},
        422,
        "'beams' is no field of this request, allowed are run, texts, beam_size, nbest, length_penalty: leave it out",
    ),
    "a blank item": ("predict", {"run": "demo", "items": [" "]}, 422, "items[0] is blank: give a text"),
    "a long item": ("predict", {"run": "demo", "items": [LONG]}, 422, "items[0] has 81 characters"),
    "a path": (
        "predict",
        {"run": "digits", "items": ["/etc/passwd"]},
        422,
        "items[0] is no file: give an object with a `name`",
    ),
    "a file of another kind": (
        "predict",
        {"run": "digits", "items": [{"name": "a.txt", "content": ""}]},
        422,
        "items[0] is no file",
    ),
    "a file that is no base64": (
        "predict",
        {"run": "digits", "items": [{"name": "a.png", "content": "?"}]},
        422,
        "items[0] is no file",
    ),
    "half of a character": ("translate", {**TEXTS, "texts": ["\ud800"]}, 422, "texts[0] has half of a character"),
    "a field that is no text": (
        "translate",
        {**TEXTS, "\ud800": 1},
        422,
        "'\\ud800' is no field of this request, allowed are run, texts",
    ),
    "an unknown run that is no text": ("translate", {**TEXTS, "run": "\ud800"}, 404, "there is no run"),
    "a picture that fills the memory": (
        "predict",
        {"run": "digits", "items": [{"name": "large.png", "content": LARGE}]},
        422,
        "items[0] is a picture of 3,000 x 3,000 pixels, allowed are 4,000,000: make it smaller",
    ),
    "a mark beyond the vocabulary": (
        "generate",
        {"run": "text", "prompt": "the \N{SNOWMAN}"},
        422,
        "the prompt holds '\N{SNOWMAN}'",
    ),
    "no prompt": (
        "generate",
        {"run": "text", "prompt": ""},
        422,
        "prompt: given '', string should have at least 1 character",
    ),
    "a long prompt": ("generate", {"run": "text", "prompt": LONG}, 422, "prompt has 81 characters"),
    "many tokens": (
        "generate",
        {"run": "text", "prompt": "a", "max_tokens": 31},
        422,
        "max_tokens is 31, allowed are up to 30",
    ),
    "heat": (
        "generate",
        {"run": "text", "prompt": "a", "temperature": 11},
        422,
        "temperature: given 11, input should be less than",
    ),
    "no targets": (
        "score",
        {"run": "demo", "items": ["a"]},
        422,
        "items has 1 entries and targets 0: give as many of each",
    ),
    "targets for a language model": ("score", {"run": "text", "items": ["ab"], "targets": ["a"]}, 422, "leave it out"),
    "a long target": ("score", {"run": "demo", "items": ["a"], "targets": [LONG]}, 422, "targets[0] has 81 characters"),
    "a run without scores": ("score", {"run": "digits", "items": ["a"]}, 422, "which scores no text: use /v1/predict"),
    "a target of a language model": (
        "inspect",
        {"run": "text", "item": "the", "target": "a"},
        422,
        "without target: leave that out",
    ),
    "more than the model reads": (
        "inspect",
        {"run": "text", "item": "the cat sees the dog"},
        422,
        "the model takes 16: shorten it",
    ),
    "an address that is none": ("translat", TEXTS, 404, "there is no POST /v1/translat here: /openapi.json lists"),
}


@pytest.mark.parametrize(("path", "body", "status", "line"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_line(client, path, body, status, line):
    answer = client.post(f"/v1/{path}", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == status and list(answer.json()) == ["error"]
    assert line in answer.json()["error"] and "\n" not in answer.json()["error"]


@pytest.mark.parametrize("body", ["{", "[]", "", "[" * 100_000, "nul"])
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_what_is_no_json_object_is_told_in_one_line(serving, client_of, body, kind):
    client = client_of(serving("demo", limits=Limits()))
    answer = client.post("/v1/translate", content=body, headers={"content-type": kind})
    assert answer.status_code in (400, 422) and answer.json()["error"].startswith(
        "the body is no JSON object: send one"
    )
    assert answer.json()["error"].endswith("with the header Content-Type: application/json")


def test_an_address_with_another_method_is_told(client):
    assert client.get("/v1/translate").json()["error"].startswith("there is no GET /v1/translate here")


def test_a_body_beyond_the_limit_is_refused(client):
    texts = ["a" * 30_000]
    answer = client.post("/v1/translate", json={"run": "demo", "texts": texts})
    assert answer.status_code == 413
    assert answer.json() == {"error": "the body has more than 20,000 bytes: send less at once"}

    def pieces():  # without a Content-Length
        yield b'{"run": "demo", "texts": ["'
        yield from [b"a" * 1000] * 30
        yield b'"]}'

    answer = client.post("/v1/translate", content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_weights_are_counted_before_they_are_computed(trained, trained_on_digits, digit):
    convolution = trained("model.encoder.self_attention={kind: convolution, kernel: 3}", "training.max_updates=2")
    recurrent = trained("model={kind: recurrent, embedding_size: 16, hidden_size: 16}", "training.max_updates=2")
    for run, item in ((trained(), SENTENCE), (trained_on_digits(), str(digit)), (convolution, SENTENCE)):
        found = run.trained.inspect(item)
        counted = num_weights(found)
        assert "pictures" not in vars(found) and counted == sum(one.weights.size for one in found.pictures) > 0
    found = recurrent.trained.inspect(SENTENCE)
    assert num_weights(found) == sum(one.weights.size for one in found.pictures)


def test_an_inspection_with_too_many_weights_is_refused(serving, client_of):
    answer = client_of(serving("demo", limits=Limits(inspected_numbers=10))).post(
        "/v1/inspect", json={"item": SENTENCE}
    )
    assert (
        answer.status_code == 422 and "attention weights, allowed are 10: give a shorter one" in answer.json()["error"]
    )


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (MemoryError(), 503, "memory ran out: send fewer or shorter texts"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 503, "memory ran out"),
        (RuntimeError(f"a fault with {SENTENCE}"), 500, "internal server error, which is logged: report it"),
        (KeyError(SENTENCE), 500, "internal server error"),
    ],
)
def test_a_fault_is_answered_and_logged_without_the_text(serving, client_of, error, status, line):
    service = serving("demo")

    def fail(rows, **options):
        raise error

    service.workers["demo"].run.translate = fail
    answer = client_of(service).post("/v1/translate", json={"texts": [SENTENCE]})
    assert answer.status_code == status and line in answer.json()["error"]
    assert ('"event": "fault"' in service.lines[0]) is (status == 500)
    assert json.loads(service.lines[-1])["status"] == status
    assert SENTENCE not in "".join(service.lines)


def test_no_text_of_a_user_is_logged_or_counted(serving, client_of):
    service = serving("demo")
    client = client_of(service)
    for path in ("/v1/translate", "/v1/predict", "/v1/nothing-secret", "/v1/translate?texts=secret"):
        client.post(path, json={"texts": ["secret"]})
    assert len(service.lines) == 4 and "secret" not in "".join(service.lines) + client.get("/metrics").text


def test_a_request_is_a_json_object_in_the_log(serving, client_of):
    service = serving("demo")
    client_of(service).post("/v1/translate", json={"texts": [SENTENCE]})
    (line,) = map(json.loads, service.lines)
    assert line.pop("milliseconds") > 0
    assert line == {"event": "request", "method": "POST", "path": "/v1/translate", "status": 200}


def test_bodies_are_logged_where_that_is_asked(serving, client_of):
    service = serving("demo")
    service.logs_bodies = True
    client_of(service).post("/v1/translate", json={"texts": [SENTENCE]})
    assert json.loads(json.loads(service.lines[0])["body"]) == {"texts": [SENTENCE]}


def test_the_interface_is_described_with_examples(client):
    described = client.get("/openapi.json").json()
    assert {path for path in described["paths"] if path.startswith("/v1/")} == {
        f"/v1/{name}" for name in ("runs", "translate", "predict", "score", "inspect", "generate")
    }
    translate = described["paths"]["/v1/translate"]["post"]
    assert set(translate["responses"]) == {"200", "401", "413", "422", "429", "503", "504"}
    answered = described["paths"]["/v1/generate"]["post"]["responses"]["200"]["content"]
    assert list(answered) == ["text/event-stream"]
    assert described["components"]["schemas"]["TranslateBody"]["properties"]["texts"]["examples"] == [[SENTENCE]]


def test_metrics_count_requests_and_batches(serving, client_of):
    service = serving("demo")
    client = client_of(service)
    client.post("/v1/translate", json={"texts": [SENTENCE, OTHER]})
    client.post("/v1/translate", json={"texts": []})
    lines = client.get("/metrics").text.splitlines()
    assert 'regardant_requests_total{path="/v1/translate",status="200"} 1.0' in lines
    assert 'regardant_requests_total{path="/v1/translate",status="422"} 1.0' in lines
    assert 'regardant_batch_rows_sum{run="demo"} 2.0' in lines
    assert 'regardant_queue_rows{run="demo"} 0.0' in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


def test_the_engine_translates(serving, client_of, monkeypatch):
    asked, on = [], Engines.on
    monkeypatch.setattr(Engines, "on", lambda self, name: asked.append(name) or on(self, "torch"))
    client = client_of(serving("demo", engine="torch-bfloat16"))
    assert asked == ["torch-bfloat16"], "it is made before the first request"
    assert client.post("/v1/translate", json={"texts": [SENTENCE]}).status_code == 200
    assert asked == ["torch-bfloat16"] * 2


def test_an_unknown_engine_ends_the_start(serving):
    with pytest.raises(ConfigError, match="there is no engine torchh; did you mean torch"):
        serving("demo", engine="torchh")


def test_numbers_that_json_lacks_are_null(serving, client_of):
    service = serving("demo")
    details = {"low": -math.inf, "none": math.nan, "scores": [1.5]}
    service.workers["demo"].run.predict = lambda rows: [Prediction("a", "b", details)]
    (found,) = client_of(service).post("/v1/predict", json={"items": ["a"]}).json()["predictions"]
    assert found == {"item": "a", "answer": "b", "low": None, "none": None, "scores": [1.5], "notes": []}


def test_a_link_is_followed_anew_by_a_reload(named_runs, tmp_path, serving):
    (tmp_path / "mine").symlink_to(named_runs / "text")
    service = serving(tmp_path / "mine")
    (tmp_path / "mine").unlink()
    (tmp_path / "mine").symlink_to(named_runs / "demo")
    service.reload()
    assert service.lines == ['{"event": "reload", "run": "mine", "outcome": "done"}']
    assert service.worker("mine", "translate").run.config.task == "translation"
    assert service.metrics.registry.get_sample_value("regardant_reloads_total", {"run": "mine", "outcome": "done"}) == 1
