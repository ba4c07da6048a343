import json
import math
import shutil

import numpy as np
import pytest

from regardant import run
from regardant.data.text import EncodedText
from regardant.data.vocabulary import UNK
from regardant.errors import ConfigError, DataError, RunError
from regardant.training.events import read_events


@pytest.fixture
def loaded(trained_on_text):
    return trained_on_text()


@pytest.fixture
def own(trained_on_text, tmp_path):
    """A copy of the run to write to."""
    return run.load(shutil.copytree(trained_on_text().folder, tmp_path / "run"))


def test_texts_of_the_length_asked_go_on_from_the_prompt(loaded):
    texts = loaded.generate("the cat", samples=3, max_tokens=40)
    assert [len(text) for text in texts] == [40, 40, 40] and len(set(texts)) == 3


def test_a_stream_is_the_prompt_and_the_sample_of_its_number(loaded):
    texts = loaded.generate("the", samples=3, seed=7, max_tokens=30)
    assert "".join(loaded.stream("the", sample=2, seed=7, max_tokens=30)) == "the" + texts[2]


def test_options_are_as_the_recipe_says_unless_given(loaded):
    assert loaded.generation(temperature=None, top_k=3).model_dump() == {
        **loaded.config.generation.model_dump(),
        "top_k": 3,
    }
    assert loaded.generate("the", temperature=0, seed=1) == loaded.generate("the", top_k=1, seed=2)
    with pytest.raises(ConfigError, match="tempreature: unknown key; did you mean temperature"):
        loaded.generate("the", tempreature=1)


def test_a_prompt_longer_than_the_context_is_gone_on_from(loaded):
    assert len(loaded.generate("the old cat sees a red tree and ", max_tokens=5)[0]) == 5


@pytest.mark.parametrize(
    ("prompt", "told"), [("the ÿ", "the prompt holds 'ÿ', which the vocabulary lacks"), ("", "give a prompt")]
)
def test_a_prompt_that_cannot_be_gone_on_from_is_one_line(loaded, prompt, told):
    with pytest.raises(DataError, match=told):
        loaded.generate(prompt)


def test_an_unknown_token_of_known_characters_is_named_whole(loaded, monkeypatch):
    tokenizer = loaded.trained.tokenizer
    encode = tokenizer.encode_long
    monkeypatch.setattr(tokenizer, "encode_long", lambda text: np.array([UNK]) if text == "the cat" else encode(text))
    with pytest.raises(DataError, match="the prompt holds 'the cat', which the vocabulary lacks"):
        loaded.generate("the cat")


def test_what_is_like_the_text_is_more_probable_than_what_is_not(loaded):
    like, unlike = (loaded.score(text) for text in ("the old cat likes a dog", "teh odl cta lieks a dgo"))
    assert like.nats_per_character < 1.5 < unlike.nats_per_character
    assert like.characters == 22
    with pytest.raises(DataError, match="a text of 1 tokens cannot be scored"):
        loaded.score("a")


@pytest.mark.parametrize(
    ("tokenizer", "text", "characters"),
    [
        ("character", " a cat", 5),
        ("byte", "a cat", 4),
        ("code", "the old cat", 8),
    ],
)
def test_bits_are_by_characters_after_the_first_token(trained_on_text, tokenizer, text, characters):
    scored = trained_on_text(f"tokenizer={{kind: {tokenizer}}}", "training.max_updates=2").score(text)
    assert scored.characters == characters
    assert scored.bits_per_character == pytest.approx(scored.nats / characters / math.log(2))


def test_bits_in_training_are_by_the_same_characters_as_in_evaluation(trained_on_text):
    loaded = trained_on_text("tokenizer={kind: code}", "training.max_updates=2", "data.validation_share=0.102")
    validation = next(event for event in read_events(loaded.folder / "metrics.jsonl") if event["event"] == "validation")
    text = EncodedText.load(loaded.folder / "data")
    scored = loaded.trained._score(text.tokens["validation"], text.characters["validation"])
    assert scored.characters < text.characters["validation"] - 1
    in_training = validation["bits_per_character"] / validation["loss"]
    assert in_training == pytest.approx(scored.bits_per_character / scored.loss, rel=1e-9)


def test_a_text_without_a_character_after_its_first_token_is_one_line(trained_on_text):
    loaded = trained_on_text("tokenizer={kind: byte}", "training.max_updates=2")
    with pytest.raises(DataError, match=r"^a text of 1 characters has none after its first token"):
        loaded.score("é")


def test_evaluation_is_of_the_text_kept_back_and_is_kept(own):
    scores = own.evaluate()
    assert list(scores) == ["validation"]
    assert scores["validation"] == json.loads((own.folder / "evaluation" / "validation.json").read_text("utf-8"))
    validated = [json.loads(line) for line in (own.folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    best = min(event["loss"] for event in validated if event["event"] == "validation")
    assert scores["validation"]["loss"] == pytest.approx(best, rel=1e-5)
    assert scores["validation"]["unknown"] == 0


def test_the_test_text_comes_first_where_there_is_one(trained_on_text):
    scores = trained_on_text("data.test_share=0.2", "training.max_updates=2").evaluate()
    assert list(scores) == ["test", "validation"]
    assert scores["test"]["tokens"] == pytest.approx(2 * scores["validation"]["tokens"], rel=0.01)


def test_other_texts_are_each_scored_by_themselves(own, text_file, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("the ÿ dog", encoding="utf-8")
    scores = own.evaluate(data=[other, text_file])
    assert scores["other.txt"]["unknown"] == 1
    assert scores["other.txt"]["loss"] > scores["a.txt"]["loss"]
    assert "1 of them unknown" in own.trained.summary("other.txt", scores["other.txt"])[0]
    assert own.trained.summary("a.txt", scores["a.txt"])[0].startswith(
        f"a.txt: loss {scores['a.txt']['loss']:.4f} nats"
    )


def test_what_cannot_be_evaluated_is_one_line(own, tmp_path):
    with pytest.raises(ConfigError, match="a language model is scored without beam_size: leave that out"):
        own.evaluate(beam_size=3)
    for name in ("validation", "empty.txt"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=r"--data validation has the name of a test set of .*: rename the file"):
        own.evaluate(data=[tmp_path / "validation"])
    with pytest.raises(ConfigError, match=r"--data was given 2 files named empty.txt: rename all but one"):
        own.evaluate(data=[tmp_path / "empty.txt", tmp_path / "other" / "empty.txt"])
    with pytest.raises(DataError, match=r"empty\.txt has 0 tokens: give a text of two at least"):
        own.evaluate(data=[tmp_path / "empty.txt"])
    (own.folder / "data").rename(tmp_path / "away")
    with pytest.raises(RunError, match="holds no text: give some with --data"):
        run.load(own.folder).evaluate()


@pytest.mark.parametrize("kind", ["byte", "character", "code"])
def test_a_text_of_many_scripts_is_learned_and_written(tiny_text_config, tmp_path, kind):
    (tmp_path / "é.txt").write_text("été 😀\u2028déjà\n" * 60, encoding="utf-8")
    overrides = (f"data.root={tmp_path}", "data.source=é.txt", f"tokenizer.kind={kind}")
    run.train(tiny_text_config(*overrides), tmp_path / "run", lambda line: None)
    written = run.load(tmp_path / "run").generate("été", temperature=0, max_tokens=60)[0]
    assert "😀\u2028déjà\nété" in written
