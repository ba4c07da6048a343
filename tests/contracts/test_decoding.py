"""A trained translator writes the same whatever is computed beside it, and whether or not it remembers its steps."""

import pytest
import torch

from regardant.data.batching import pad
from regardant.data.vocabulary import EOS, NEVER_WRITTEN, PAD, SOS
from regardant.generation.beam import Search
from regardant.generation.config import GenerationConfig
from regardant.generation.search import BatchSizes, ModelSearcher, generate
from regardant.generation.teacher_forcing import score_tokens

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

TOLERANCE = 1e-4
"""Of scores in float32: matrix products of other shapes add up in other orders."""

MODELS = {
    "pre-norm": (),
    "post-norm": ("model.norm=post", "model.positions.kind=learned"),
}


@pytest.fixture(params=MODELS)
def translator(request, trained):
    return trained(*MODELS[request.param]).translator


@pytest.fixture(params=[1, 5], ids=["greedy", "beam-5"])
def generation(request):
    # A limit that some reach: hypotheses that are cut must agree too.
    return GenerationConfig(
        beam_size=request.param, nbest=min(request.param, 2), max_length_ratio=1, max_length_extra=3
    )


@pytest.fixture
def sources(translator, test_set):
    """Ids of all test sentences, without EOS."""
    sources = translator.tokenizers.source.encode_batch(test_set.sources)
    assert len(sources) >= 100 and len({len(ids) for ids in sources}) > 5
    return sources


def search(translator, sources, generation, **options):
    searcher = ModelSearcher(translator.model, translator.codec, translator.device, **options)
    return searcher.search(sources, [[] for _ in sources], generation, 40)


def assert_same(found, expected):
    for hypotheses, others in zip(found, expected, strict=True):
        assert [hypothesis.tokens for hypothesis in hypotheses] == [other.tokens for other in others]
        scores = [[h.score for h in hypotheses] for hypotheses in (hypotheses, others)]
        assert scores[0] == pytest.approx(scores[1], abs=TOLERANCE, rel=0)


def test_a_sentence_in_a_batch_gets_what_it_gets_alone(translator, generation, sources):
    together = search(translator, sources, generation, work=BatchSizes(batch_tokens=10**6))
    alone = [hypotheses for source in sources for hypotheses in search(translator, [source], generation)]
    assert len({tuple(hypotheses[0].tokens) for hypotheses in alone}) > 20, "a model that says one thing proves nothing"
    assert_same(together, alone)


def test_the_last_sentences_of_batches_go_on_together(translator, generation, sources, monkeypatch):
    joined, steps = [], []
    join, step = Search.join, translator.model.step
    monkeypatch.setattr(Search, "join", lambda self, other: (joined.append(len(other.sentences)), join(self, other)))
    monkeypatch.setattr(
        translator.model, "step", lambda tokens, state: (steps.append(len(tokens)), step(tokens, state))[1]
    )
    found = search(translator, sources, generation, work=BatchSizes(batch_tokens=10**6, batch_sentences=8))
    assert len(joined) > 1 and max(steps) <= 8
    together = len(steps)
    monkeypatch.setattr(Search, "takes", lambda self, other: False)
    assert_same(found, search(translator, sources, generation, work=BatchSizes(batch_tokens=10**6, batch_sentences=8)))
    assert len(steps) - together > together


def test_padding_changes_nothing(translator, generation, sources):
    source = pad(sources)
    wider = torch.cat([source, source.new_full((len(source), 7), PAD)], dim=1)
    written = generate(translator.model, source, generation, max_length=40)
    assert_same(generate(translator.model, wider, generation, max_length=40), written)


def test_what_was_found_step_by_step_scores_the_same_in_one_pass(translator, generation, sources):
    best = [hypotheses[0] for hypotheses in search(translator, sources, generation)]
    assert {hypothesis.finished for hypothesis in best} == {True, False}
    target = pad([hypothesis.tokens for hypothesis in best], sos=True)
    lengths = torch.tensor([len(hypothesis.tokens) + hypothesis.finished for hypothesis in best])
    scores = score_tokens(translator.model, pad(sources), target)
    scores = scores.masked_fill(torch.arange(scores.shape[1]) >= lengths[:, None], 0).sum(1)  # no EOS where cut
    expected = torch.tensor([hypothesis.log_probability for hypothesis in best])
    torch.testing.assert_close(scores / lengths, expected / lengths, rtol=0, atol=TOLERANCE)


def test_every_greedy_token_is_the_best_of_the_whole_prefix_read_anew(translator, sources):
    model, source = translator.model, pad(sources)
    greedy = GenerationConfig(beam_size=1, length_penalty=0, max_length_ratio=1, max_length_extra=3)
    found = [[*h.tokens, EOS] if h.finished else h.tokens for (h,) in generate(model, source, greedy)]
    target = pad(found, sos=True)[:, :-1]  # as written: a finished one ends with the EOS it has
    with torch.inference_mode():
        for step in range(1, target.shape[1]):
            scores = model.scores(source, target[:, :step])[:, -1]
            scores[:, NEVER_WRITTEN] = -torch.inf
            writing = torch.tensor([len(tokens) >= step for tokens in found])
            assert torch.equal(scores.argmax(-1)[writing], target[writing, step])


def test_every_step_of_a_beam_is_the_model_on_its_whole_prefix(translator, sources):
    """Beams of random tokens in an order that changes at each step, while sentences leave."""
    model, source, beams, steps = translator.model, pad(sources), 3, 12
    generator = torch.Generator().manual_seed(0)
    written = torch.full((len(source), beams, 1), SOS)
    with torch.inference_mode():
        state = model.start(model.encode(source), beams, steps)
        for step in range(steps):
            logits = model.step(written[:, : beams if step else 1, -1], state).expand(-1, beams, -1)
            anew = model.scores(source.repeat_interleave(beams, 0), written.flatten(0, 1))[:, -1]
            torch.testing.assert_close(logits.flatten(0, 1), anew, rtol=0, atol=TOLERANCE)
            vocab_size = logits.shape[-1]
            newest = torch.randint(EOS + 1, vocab_size, (len(source), beams, 1), generator=generator)
            written = torch.cat([written, newest], dim=2)
            if step % 4 == 3:
                staying = torch.arange(1, len(source), 2)
                state.keep(staying)
                source, written = source[staying], written[staying]
            order = torch.randint(beams if step else 1, (len(source), beams), generator=generator)
            state.reorder(order)
            written = written.gather(1, order[..., None].expand_as(written))
