import numpy as np
import pytest
import torch

from regardant.data.vocabulary import PAD
from regardant.data.words import words
from regardant.errors import ConfigError, DataError
from regardant.evaluation.alignment import parse_links
from regardant.inspection import capture
from regardant.tasks.translation.learn.guidance import GuidedJob, token_alignment
from regardant.tasks.translation.task import Translation

CPU = torch.device("cpu")
GUIDED = ("data.links=gold", "alignment_guidance.weight=0.25", "data.train_size=60", "data.validation_size=5")
RECURRENT = '{"kind": "recurrent", "embedding_size": 8, "hidden_size": 8, "dropout": 0.0}'


@pytest.fixture
def job(tiny_config, tmp_path):
    """A job of TINY with fields set, over a text of its own."""
    return lambda *overrides: Translation().prepare(tiny_config(*overrides), tmp_path / "run", lambda line: None).job


def test_links_of_words_are_spread_over_their_tokens():
    links = {(0, 0), (1, 0), (2, 2)}
    source_words, target_words = [0, 1, 1, 2, -1], [0, 0, 1, 2, -1]
    third = [1 / 3, 1 / 3, 1 / 3, 0, 0]
    expected = [third, third, [0] * 5, [0, 0, 0, 1, 0], [0] * 5]
    np.testing.assert_allclose(token_alignment(links, source_words, target_words), expected)


def test_a_link_of_a_word_without_tokens_is_of_no_token():
    assert not token_alignment({(7, 0), (0, 9)}, [0, -1], [0, -1]).any()


def test_a_batch_comes_with_the_gold_links_of_its_pairs(job, tmp_path):
    made = job(*GUIDED)
    lines = (tmp_path / "run" / "data" / "links" / "train.links").read_text().splitlines()
    train, checked = made.corpus.splits.train, 0
    assert len(lines) == len(train) == 60
    for planned in made.plan(0):
        batch = made.load(planned)
        for row, index in enumerate(made.batches.kept[planned].tolist()):
            source, target = train[index]["source"], train[index]["target"]
            lengths = [int((side[row] != PAD).sum()) - 1 for side in (batch.source, batch.target[:, 1:])]
            if lengths != [len(words(source)), len(words(target))]:
                continue  # a token is another thing than a word there, as in aujourd'hui
            checked += 1
            expected = np.zeros(batch.alignment.shape[1:])
            for one, other in parse_links(lines[index]):
                expected[other, one] = 1
            expected /= np.maximum(expected.sum(1, keepdims=True), 1)
            np.testing.assert_allclose(batch.alignment[row], expected, rtol=1e-6)
    assert checked > 20


@pytest.mark.parametrize("overrides", [(), (f"model={RECURRENT}",)], ids=["transformer", "recurrent"])
def test_the_loss_has_the_cross_entropy_of_the_head_s_attention_beside_it(job, overrides):
    made = job(*GUIDED, *overrides)
    made.model.eval()
    batch = made.load(made.plan(0)[0])
    loss = made.loss(made.model, batch, CPU)
    with torch.no_grad(), capture(made.model, "*cross_attention.weights") as records:
        plain = made.model(**batch.inputs, targets=batch.targets)
    weights = records.whole(next(iter(records)))[:, 0].double()
    nats = 0.0
    for b, t, s in batch.alignment.nonzero().tolist():
        nats -= float(batch.alignment[b, t, s]) * float(weights[b, t, s].log())
    assert float(loss.total.detach()) == pytest.approx(float(plain.total) + 0.25 * nats, rel=1e-5)
    assert (float(loss.plain), loss.count) == (pytest.approx(float(plain.plain)), plain.count)
    assert not any(module._forward_hooks for module in made.model.modules())


def test_one_head_of_one_layer_is_taught_and_no_other(job):
    made = job(*GUIDED, "alignment_guidance.head=1", "model.decoder.num_layers=2", "alignment_guidance.layer=-2")
    batch = made.load(made.plan(0)[0])
    with torch.enable_grad():
        plain = made.model(**batch.inputs, targets=batch.targets)
        (made.loss(made.model, batch, CPU).total - plain.total).backward()
    first, second = (layer.cross_attention.query.weight.grad for layer in made.model.decoder.layers)
    assert float(first[16:].abs().max()) > 1e-3
    assert float(first[:16].abs().max()) < 1e-5 and float(second.abs().max()) < 1e-5


def test_a_part_of_a_batch_has_its_alignments(job):
    made = job(*GUIDED)
    batch = made.load(made.plan(0)[0])
    part = batch.to(CPU).part(1, 3)
    assert torch.equal(part.alignment, batch.alignment[1::3]) and torch.equal(part.source, batch.source[1::3])


def test_by_default_gold_links_are_not_kept_for_training(job, tmp_path):
    made = job("data.train_size=30", "data.validation_size=5")
    assert not isinstance(made, GuidedJob) and made.corpus.links is None
    assert sorted(path.name for path in (tmp_path / "run" / "data" / "links").iterdir()) == [
        "heldout.links",
        "test.links",
        "validation.links",
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("alignment_guidance.weight=0.1",), "alignment_guidance needs alignments of the training text: set data"),
        (("data.links=gold",), "data.links are for alignment_guidance: set alignment_guidance.weight=0.05 or leave"),
        ((*GUIDED, "model.residual=reversible"), "alignment_guidance needs weights that reversible residuals"),
        ((*GUIDED, "model.activation_checkpointing=true"), "and activation_checkpointing discard: choose one"),
        ((*GUIDED, "alignment_guidance.weight=0"), "alignment_guidance.weight"),
        ((*GUIDED, "alignment_guidance.layer=1"), "alignment_guidance.layer 1 .* has 1 layers of it: choose one"),
        ((*GUIDED, 'model={"kind": "one_to_one"}'), "alignment_guidance.layer -1 .* has none: leave it out"),
    ],
)
def test_what_cannot_be_taught_is_one_line(job, overrides, message):
    with pytest.raises(ConfigError, match=message):
        job(*overrides)


def test_a_head_that_is_not_there_is_one_line(job):
    made = job(*GUIDED, "alignment_guidance.head=2")
    with pytest.raises(ConfigError, match=r"head 2 counts from 0, and decoder\.layers\.0\.cross_attention has 2 heads"):
        made.loss(made.model, made.load(made.plan(0)[0]), CPU)


@pytest.fixture
def files(tmp_path):
    """Pairs of two files, whose words stand between white space, and their links."""

    def write(link):
        lines = [(f"the n{n}.", f"n{n}. le", link) for n in range(12)]
        for name, column in (("a.en", 0), ("a.fr", 1), ("a.links", 2)):
            (tmp_path / name).write_text("".join(line[column] + "\n" for line in lines), encoding="utf-8")
        data = {"kind": "pairs", "root": str(tmp_path), "source": "a.en", "target": "a.fr", "links": "a.links"}
        return [f"data={data}".replace("'", '"'), "alignment_guidance.weight=1", "tokenizer.vocab_size=null"]

    return write


def test_given_links_count_the_words_between_white_space(job, files, tmp_path):
    made = job(*files("0-1 1-0"))
    batch = made.load(made.plan(0)[0])
    tokens = made.corpus.tokenizers.source.tokens(batch.source[0].tolist())
    assert len(tokens) == batch.source.shape[1] == 4  # the, n1, the full stop, the end
    expected = [[0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert batch.alignment[0].tolist() == expected
    kept = (tmp_path / "run" / "data" / "links" / "train.links").read_text()
    (tmp_path / "a.links").unlink()  # the run has its own
    assert torch.equal(job(*files("0-0")).load(made.plan(0)[0]).alignment, batch.alignment)
    assert set(kept.splitlines()) == {"0-1 1-0"}


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("0-2", r"a\.links: link 0-2 of a pair of 2 and 2 words \('the n\d+\.'\): count from 0, source first"),
        ("0:1", "alignment link '0:1'; must be source-target, counted from 0"),
    ],
)
def test_links_that_do_not_fit_are_one_line(job, files, link, message):
    with pytest.raises(DataError, match=message):
        job(*files(link))
