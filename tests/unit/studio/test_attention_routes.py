"""What the pages are told is what the package says, to the digit."""

import base64
import zlib

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from regardant.attention import ScaledDotProductConfig
from regardant.attention.window import WindowConfig
from regardant.inspection import ScaleHead, intervene
from regardant.studio.app import make_app
from regardant.studio.five_steps import _asymmetry, _scores_of_all

TEXT = "The old judge sees the small cat."
CROSS = "decoder.layers.0.cross_attention"


def weights_of(pictures):
    for kind, layers in zip(pictures["kinds"], pictures["weights"], strict=True):
        rows, columns = kind["heads"] * len(kind["target"]), len(kind["source"])
        shape = (kind["heads"], len(kind["target"]), columns)
        contents = [zlib.decompress(base64.b64decode(one)) for one in layers]
        largest = [np.frombuffer(one, "<f4", rows)[:, None] for one in contents]
        fractions = [np.frombuffer(one, np.uint8, offset=4 * rows).reshape(rows, columns) / 255 for one in contents]
        yield [(part * most).reshape(shape) for part, most in zip(fractions, largest, strict=True)]


def test_a_look_is_the_inspection(ask, trained):
    told, run = ask("look"), trained()
    found = run.inspect(TEXT, run.translate([TEXT])[0].text)
    assert (told["item"], told["answer"]) == (TEXT, found.target)
    assert told["log_probability"] == pytest.approx(run.score([TEXT], [found.target])[0], abs=1e-4)
    assert told["candidates"][0]["text"] == found.target
    for layers, picture in zip(weights_of(told["pictures"]), found.pictures, strict=True):
        np.testing.assert_allclose(np.stack(layers), picture.weights, atol=0.51 / 255)
    assert told["pictures"]["places"][-1] == [CROSS]
    links = told["alignment"]["links"]
    assert links and all(s < len(told["alignment"]["source"]) and t < 20 for s, t in links)


def test_heads_switched_off_translate_otherwise(ask, trained):
    run = trained()
    off = [{"attention": CROSS, "head": head} for head in (0, 1)]
    with intervene(run.translator.model, ScaleHead(CROSS, 0), ScaleHead(CROSS, 1)):
        expected = run.translate([TEXT])[0].text
    told = ask("look", off=off)
    assert told["answer"] == expected != ask("look")["answer"]
    assert told["log_probability"] != pytest.approx(run.score([TEXT], [expected])[0], abs=1e-3)


def test_a_given_translation_is_looked_at(ask):
    told = ask("look", target="Le vieux juge voit le petit chat.")
    assert told["answer"] == "Le vieux juge voit le petit chat." and told["candidates"] == []


def test_pictures_of_convolutions_have_no_heads_to_switch_off(trained):
    both = [f"model.{stack}.self_attention={{kind: convolution, kernel: 3}}" for stack in ("encoder", "decoder")]
    run = trained(*both, "training.max_updates=2")
    client = TestClient(make_app([run.folder]), base_url="http://localhost")
    pictures = client.post("/api/look", json={"run": run.folder.as_posix(), "text": TEXT}).json()["pictures"]
    assert [kind["kind"] for kind in pictures["kinds"]] == [
        "Encoder self-attention by position",
        "Decoder self-attention by position",
        "Cross-attention",
    ]
    assert pictures["places"] == [[], [], [CROSS]]


def test_the_tree_s_best_path_is_the_translation(ask, trained):
    tree = ask("view", view="beam search", beam_size=4)
    (best,) = tree["best"]
    tokens = [tree["candidates"][number]["token"] for number in best]
    expected = trained().translate([TEXT], beam_size=4)[0]
    assert [token for token in tokens if token != "<eos>"] == expected.tokens
    assert tree["candidates"][best[-1]]["score"] == pytest.approx(expected.score, abs=1e-4)


def test_markup_is_text(ask, studio):
    client, name = studio
    text = "</script><img src=x onerror=alert(1)> cat"
    answer = client.post("/api/look", json={"run": name, "text": text})
    assert answer.headers["content-type"] == "application/json" and answer.json()["item"] == text


class OnAnAccelerator(torch.nn.Module):
    """A mechanism without parameters whose features are on another device."""

    def __init__(self):
        super().__init__()
        self.register_buffer("directions", torch.zeros(2, device="meta"))

    def compute_scores(self, q, k, view):
        assert q.device == k.device == self.directions.device
        return torch.zeros(1, 2, 3, 3)


def test_recorded_vectors_are_moved_to_the_mechanism():
    vectors = torch.randn(1, 2, 3, 4)
    assert _scores_of_all(OnAnAccelerator(), vectors, vectors).shape == (1, 2, 3, 3)


@pytest.mark.parametrize("place", ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", CROSS])
def test_the_five_steps_follow_from_each_other(ask, place):
    told = ask("steps", attention=place, head=1, query=2, component=3)
    q, k, v, weights = (np.array(told[name]) for name in ("q", "k", "v", "weights"))
    projected = told["projected"]
    assert np.dot(projected["x"], projected["weight"]) + projected["bias"] == pytest.approx(q[3], abs=1e-5)
    assert projected["turned"] or projected["q"] == pytest.approx(told["q"], abs=1e-5)
    np.testing.assert_allclose(k @ q, told["products"], atol=1e-4)
    assert told["scale"] == pytest.approx(1 / np.sqrt(len(q)))
    np.testing.assert_allclose(np.array(told["products"]) * told["scale"], told["scaled"], atol=1e-5)
    hidden = [score is None for score in told["scores"]]
    assert hidden == (
        [key > 2 for key in range(len(hidden))] if "decoder" in place and "self" in place else [False] * len(hidden)
    )
    scores = np.array([-np.inf if score is None else score for score in told["scores"]])
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), weights, atol=1e-5)
    np.testing.assert_allclose(weights @ v, told["mixed"], atol=1e-5)
    by_angle = told["length"] * np.array(told["lengths"]) * np.array(told["cosines"])
    np.testing.assert_allclose(by_angle, told["products"], atol=1e-4)
    assert (told["asymmetry"] is None) == ("cross" in place)
    assert told["asymmetry"] is None or 0.01 < told["asymmetry"] <= 1


def test_the_asymmetry_of_scores_is_taken_before_a_window_masks_them():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, heads, 9, 4, generator=generator) for heads in (2, 1))
    windowed, exact = (
        config.build(num_heads=2, head_size=4) for config in (WindowConfig(window=1), ScaledDotProductConfig())
    )
    expected = _asymmetry(exact, q, k, 1)
    assert 0 < expected <= 1 and _asymmetry(windowed, q, k, 1) == pytest.approx(expected)


def test_a_projection_without_biases_adds_zeros(trained):
    run = trained("model.attention_bias=false", "training.max_updates=2")
    client = TestClient(make_app([run.folder]), base_url="http://localhost")
    for place in ("encoder.layers.0.self_attention", CROSS):
        body = {"run": run.folder.as_posix(), "text": TEXT, "attention": place, "head": 1, "component": 3}
        told = client.post("/api/steps", json=body).json()
        projected = told["projected"]
        assert projected["bias"] == 0 and projected["q"] == pytest.approx(told["q"], abs=1e-5)
        assert np.dot(projected["x"], projected["weight"]) == pytest.approx(told["q"][3], abs=1e-5)


def test_the_probabilities_of_tokens_multiply_to_the_sentence_s(ask, trained):
    target = "Le vieux juge voit le petit chat."
    told = ask("view", view="token by token", target=target)
    total = sum(np.log(step["probability"]) for step in told["steps"])
    assert told["forced"] and total == pytest.approx(trained().score([TEXT], [target])[0], abs=1e-3)
    for step in told["steps"]:
        shares = [share for _, share in step["likeliest"]]
        assert shares == sorted(shares, reverse=True)
        if step["rank"] <= len(shares):
            assert shares[step["rank"] - 1] == pytest.approx(step["probability"])


def test_by_itself_the_likeliest_token_is_written(ask):
    told = ask("view", view="token by token")
    written = [step for step in told["steps"] if step["token"] != "<eos>"]
    assert not told["forced"] and written and all(step["rank"] == 1 for step in written)


def test_shapes_are_those_of_the_pass(ask, trained):
    told = ask("shapes")

    def find(part, name):
        return part if part["name"] == name else next(filter(None, (find(one, name) for one in part["parts"])), None)

    tree, d_model = told["tree"], 32
    layer = find(tree, "encoder.layers.0")
    assert layer["inputs"][0] == layer["outputs"][0] == [1, told["elements"]["source"], d_model]
    mechanism = find(tree, "decoder.layers.0.cross_attention.mechanism")
    assert mechanism["inputs"][:2] == [
        [1, 2, told["elements"]["target"], d_model // 2],
        [1, 2, told["elements"]["source"], d_model // 2],
    ]
    assert tree["parameters"] == sum(p.numel() for p in trained().translator.model.parameters())
    assert not any(module._forward_hooks for module in trained().translator.model.modules())


def test_vectors_that_pass_are_those_captured(ask, trained):
    target = "Le vieux juge voit le petit chat."
    told, found = ask("streams", target=target), trained().inspect(TEXT, target)
    read, written = told["sides"]
    assert (read["tokens"], len(written["tokens"])) == (
        found.inputs["source"].labels,
        len(found.inputs["target"].labels),
    )
    assert written["tokens"][:2] == ["<sos>", "▁Le"]
    first = read["places"][0]
    lengths = found.records.whole("source.written")[0].norm(dim=-1)
    assert (first["place"], first["quantity"]) == ("source", "written")
    np.testing.assert_allclose(first["lengths"], lengths, rtol=1e-3)
    norm = "decoder.layers.0.after_feed_forward.norm"
    told = ask("streams", target=target, place=norm)
    assert told["tokens"] == written["tokens"] and list(told["vectors"]) == ["before", "after"]
    for quantity, vectors in told["vectors"].items():
        np.testing.assert_allclose(vectors, found.records.whole(f"{norm}.{quantity}")[0], rtol=1e-3, atol=1e-6)
    assert "choose one of target, source, " in ask("streams", status=422, place="sourse")["detail"]


def test_a_recurrent_model_shows_states_and_gates_of_both_directions(trained):
    recurrent = trained("model={kind: recurrent, embedding_size: 16, hidden_size: 16}", "training.max_updates=2")
    client = TestClient(make_app([recurrent.folder]), base_url="http://localhost")
    body = {"run": recurrent.folder.as_posix(), "text": TEXT, "place": "encoder.layers.0"}
    told = client.post("/api/streams", json=body).json()
    gates = ("state", "reset_gate", "update_gate", "candidate")
    assert list(told["vectors"]) == [f"{gate}, {way}" for gate in gates for way in ("forwards", "backwards")]
    assert all(np.shape(vectors) == (len(told["tokens"]), 8) for vectors in told["vectors"].values())
    assert 0 < np.min(told["vectors"]["update_gate, forwards"]) < np.max(told["vectors"]["update_gate, forwards"]) < 1
    asked = client.post("/api/streams", json={**body, "place": None}).json()
    assert asked["sides"][1]["places"][-1]["quantity"] == "state" and len(asked["tokens"]) == len(
        asked["vectors"]["state"]
    )


def test_masks_hide_together_what_each_hides(studio):
    client, _ = studio
    body = {"length": 5, "padding": 1, "causal": True, "window": 1, "edges": "4-1, 3>2"}
    told = client.post("/api/mask", json=body).json()
    at = np.arange(5)
    real = np.broadcast_to(at < 4, (5, 5))
    edges = np.eye(5, dtype=bool)
    edges[3, 0] = edges[2, 1] = True
    expected = {"padding": real, "causal": at[:, None] >= at, "window": abs(at[:, None] - at) <= 1, "edges": edges}
    assert {name: np.array(one).tolist() for name, one in expected.items()} == told["parts"]
    together = np.logical_and.reduce(list(expected.values()))
    assert told["allowed"] == together.tolist() and told["fully_masked"] == [4]
    np.testing.assert_allclose(told["weights"], together / np.maximum(1, together.sum(1, keepdims=True)))
    assert told["code"].startswith("combine(padding(") and torch.tensor(told["allowed"]).any()
    alone = client.post("/api/mask", json={"length": 2}).json()
    assert alone["allowed"] == [[True, True], [True, True]] and alone["code"] == "View()"


@pytest.fixture(scope="module")
def others(trained_on_text, trained_on_labels):
    """A client over a language model, a classifier and one without attention; and their names."""
    folders = [trained_on_text().folder, trained_on_labels().folder]
    folders.append(trained_on_labels("model={kind: bag}", "training.max_updates=5").folder)
    return TestClient(make_app(folders), base_url="http://localhost"), [folder.as_posix() for folder in folders]


@pytest.mark.parametrize("number", [0, 1])
def test_any_run_with_attention_is_looked_at(others, trained_on_text, trained_on_labels, number):
    client, names = others
    text = ("the old cat", "a bird sees the cat and the red dog .")[number]
    told = client.post("/api/look", json={"run": names[number], "text": text}).json()
    found = (trained_on_text, trained_on_labels)[number]().inspect(text)
    assert (told["item"], told["answer"], told["views"]) == (text, found.answer, [])
    assert told["shares"][0][1] == pytest.approx(found.shares[0][1], abs=1e-6)
    for layers, picture in zip(weights_of(told["pictures"]), found.pictures, strict=True):
        np.testing.assert_allclose(np.stack(layers), picture.weights, atol=0.51 / 255)
    place = told["pictures"]["places"][0][0]
    steps = client.post("/api/steps", json={"run": names[number], "text": text, "attention": place, "query": 2}).json()
    ((name, elements),) = found.inputs.items()
    assert steps["queries"] == steps["keys"] == elements.labels
    np.testing.assert_allclose(np.dot(steps["weights"], steps["v"]), steps["mixed"], atol=1e-4)
    streams = client.post("/api/streams", json={"run": names[number], "text": text}).json()
    assert [side["name"] for side in streams["sides"]] == [name.capitalize()] and streams["tokens"] == elements.labels
    shapes = client.post("/api/shapes", json={"run": names[number], "text": text}).json()
    assert shapes["elements"] == {name: len(elements.labels)} and shapes["tree"]["parameters"] > 0


def test_a_head_that_is_switched_off_changes_the_answer_of_a_classifier(others):
    client, (_, name, _) = others
    body = {"run": name, "text": "a bird sees the cat and the red dog ."}
    places = client.post("/api/look", json=body).json()["pictures"]["places"]
    off = [{"attention": place, "head": head} for place in places[0] for head in (0, 1)]
    whole, without = (client.post("/api/look", json={**body, "off": one}).json()["shares"] for one in ([], off))
    assert abs(dict(whole)["cat first"] - dict(without)["cat first"]) > 1e-3


def test_what_a_task_cannot_show_is_refused_by_name_in_one_line(others):
    client, (text_run, labels_run, bag) = others
    body = {"run": labels_run, "text": "the cat and the dog"}
    for name in ("beam search", "token by token"):
        answer = client.post("/api/view", json={**body, "view": name})
        assert answer.status_code == 422 and f"has no view {name}, " in answer.json()["detail"]
    answer = client.post("/api/look", json={**body, "target": "le chat"})
    assert answer.json()["detail"] == "a run of classification is inspected without target: leave that out"
    answer = client.post("/api/look", json={"run": text_run, "text": "the cat", "beam_size": 3})
    assert answer.json()["detail"] == "a language model is inspected without beam_size: leave that out"
    told = client.post("/api/look", json={**body, "run": bag}).json()
    assert told["pictures"] is None and told["shares"]
    answer = client.post("/api/steps", json={**body, "run": bag})
    no_steps = f"{bag} has no attention, and so no steps to show: see Through the layers, or Shapes"
    assert answer.json()["detail"] == no_steps


def test_the_list_of_runs_has_the_options_and_views_of_each(others, studio):
    client, _ = studio
    (translator,) = client.get("/api/runs").json()
    assert (translator["inspect_options"], len(translator["views"])) == (["target", "beam_size"], 2)
    assert all((run["inspect_options"], run["views"]) == ([], []) for run in others[0].get("/api/runs").json())


def test_views_are_those_that_the_task_names(trained):
    assert tuple(trained().trained.views) == trained().config.views


def test_words_that_training_never_had_are_named(ask, trained, studio):
    client, name = studio
    known = trained().trained.known_words()
    assert {"the", "judge"} <= known and ask("look", text="The judge.")["unseen"] == []
    assert ask("look", text="The Zyzzyva, the judge, zyzzyva!")["unseen"] == ["Zyzzyva", "zyzzyva"]
    assert client.get("/api/vocabulary", params={"run": name}).json()["words"] == sorted(known)


def test_the_head_s_numbers_for_all_words_are_those_of_inspect(ask, trained):
    told, target = ask("steps", attention=CROSS, head=1), trained().translate([TEXT])[0].text
    records = trained().inspect(TEXT, target).records
    for name in ("scores", "weights", "mixed"):
        np.testing.assert_allclose(told["whole"][name], records.whole(f"{CROSS}.{name}")[0, 1], rtol=2e-3, atol=1e-6)
    assert {"place": CROSS, "name": "Cross-attention, layer 1"}.items() <= told["places"][-1].items()


def test_the_projection_to_the_vocabulary_has_shapes(ask, trained):
    told = ask("shapes")
    (head,) = (part for part in told["tree"]["parts"] if part["name"] == "head")
    model, found = trained().translator.model, trained().inspect(TEXT)
    with torch.inference_mode():
        shape = list(model.scores(**found.batch).shape)
    assert head["inputs"][0][-1] == 32 and head["outputs"] == [shape]
    assert "scores" not in vars(model.head)
