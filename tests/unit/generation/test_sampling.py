"""What is drawn is drawn from the distribution that is said, and from nothing else."""

import contextlib
import copy
import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch.utils._python_dispatch import TorchDispatchMode

from regardant.data.vocabulary import SPECIAL_TOKENS
from regardant.errors import DataError, RunError
from regardant.generation.sampling import BELOW_ONE, SamplingConfig, draw, sample
from regardant.layers.feed_forward import ConvolutionalFeedForwardConfig
from regardant.layers.linear import Layouts
from regardant.layers.mixers import MixerConfig
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.recurrent import RecurrentLanguageModelConfig
from tests.models import over_text

FIRST = len(SPECIAL_TOKENS)
VOCAB_SIZE = FIRST + 6
CONTEXT = 8
PROMPT = torch.tensor([5, 9, 7])
TEN = SamplingConfig(max_tokens=10)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 2, "max_length": CONTEXT}
    made = over_text(DecoderOnlyConfig(**sizes), VOCAB_SIZE)
    with torch.no_grad():
        made.head.weight.mul_(2)  # not all alike
    return made.eval()


def drawn(model, count=1, seed=0, prompt=PROMPT, **fields):
    """[count, max_tokens]"""
    config = SamplingConfig(**{"max_tokens": 12} | fields)
    return torch.stack(list(sample(model, prompt, config, samples=range(count), seed=seed, layouts=Layouts())), 1)


@pytest.mark.parametrize("fields", [{"temperature": 0}, {}, {"top_k": 2}], ids=str)
def test_a_model_without_numbers_is_refused(model, fields):
    broken = copy.deepcopy(model)
    torch.nn.init.constant_(broken.head.weight, math.nan)
    with pytest.raises(RunError, match="scores are not numbers"):
        drawn(broken, **fields)


def by_hand(logits, temperature, top_k, top_p):
    """The distribution, token by token."""
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if temperature == 0:
        return [float(token == order[0]) for token in range(len(logits))]
    weights = {token: math.exp((logits[token] - logits[order[0]]) / temperature) for token in order[:top_k]}
    kept, total = {}, sum(weights.values())
    for token, weight in weights.items():
        if sum(kept.values()) >= top_p * total:
            break
        kept[token] = weight
    return [kept.get(token, 0.0) / sum(kept.values()) for token in range(len(logits))]


@given(
    logits=st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=1, max_size=9),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_k=st.none() | st.integers(1, 10),
    top_p=st.sampled_from([0.01, 0.37, 0.81, 0.999, 1.0]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_the_distribution_is_that_of_the_definition(logits, temperature, top_k, top_p, dtype):
    config = SamplingConfig(temperature=temperature, top_k=top_k, top_p=top_p)
    found = config.distribution(torch.tensor([logits, logits[::-1]], dtype=dtype))
    assert found.dtype == torch.float32
    for row, given_logits in zip(found, (logits, logits[::-1]), strict=True):
        assert row.tolist() == pytest.approx(by_hand(given_logits, temperature, top_k, top_p), abs=1e-6)


class Sorted(TorchDispatchMode):
    """Records the types of what is sorted in here."""

    def __init__(self):
        super().__init__()
        self.dtypes = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function.overloadpacket is torch.ops.aten.sort:
            self.dtypes.append(arguments[0].dtype)
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize(
    ("fields", "dtypes"), [({"temperature": 0}, []), ({"top_k": 2}, [torch.float32]), ({"top_p": 0.8}, [torch.float32])]
)
def test_a_vocabulary_is_sorted_in_its_own_type_and_only_to_rank_it(fields, dtypes):
    with Sorted() as found:
        SamplingConfig(**fields).distribution(torch.randn(2, 50))
    assert found.dtypes == dtypes


@given(seed=st.integers(0, 10_000), vocab_size=st.integers(1, 300), empty=st.sampled_from([0.0, 0.5, 0.98]))
def test_a_number_draws_the_token_in_whose_share_it_falls(seed, vocab_size, empty):
    generator = torch.Generator().manual_seed(seed)
    chances = torch.rand(3, vocab_size, generator=generator)
    chances[torch.rand(3, vocab_size, generator=generator) < empty] = 0
    chances[:, vocab_size // 2] += 0.1
    numbers = torch.tensor([0.0, float(torch.rand(1, generator=generator)), BELOW_ONE])[:, None]
    tokens = draw(chances / chances.sum(1, keepdim=True), numbers)
    ends = torch.cat([torch.zeros(3, 1), chances], 1).double().cumsum(1)
    wanted = numbers * ends[:, -1:]
    assert (chances.gather(1, tokens) > 0).all()
    assert (ends.gather(1, tokens) <= wanted + 1e-6).all()  # probabilities are rounded to float32
    assert (ends.gather(1, tokens + 1) > wanted - 1e-6).all()


@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 1e5])
def test_no_temperature_is_too_low_or_too_high(temperature):
    found = SamplingConfig(temperature=temperature).distribution(torch.tensor([-30.0, 30.0, -torch.inf, 29.0]))
    assert found.sum() == pytest.approx(1) and found[2] == 0 and found.argmax() == 1


@pytest.mark.parametrize(
    "fields", [{}, {"temperature": 0.7}, {"top_k": 2}, {"top_p": 0.8}, {"temperature": 1.5, "top_k": 4, "top_p": 0.9}]
)
def test_what_is_drawn_follows_the_distribution(model, fields):
    """Two tokens, against the chances of all pairs; four thousand draws put a share within 0.03 of its chance."""
    count, config = 4000, SamplingConfig(**fields)
    pairs = Counter(map(tuple, drawn(model, count, max_tokens=2, **fields).tolist()))

    def chances(text):
        logits = model.scores(torch.tensor([text]))[0, -1, FIRST:]
        return dict(enumerate(config.distribution(logits).tolist(), FIRST))

    first = chances(PROMPT.tolist())
    for a, b in itertools.product(range(FIRST, VOCAB_SIZE), repeat=2):
        expected = first[a] * chances([*PROMPT.tolist(), a])[b]
        assert pairs[a, b] / count == pytest.approx(expected, abs=0.03)
        assert expected > 0 or not pairs[a, b]
    assert all(FIRST <= token < VOCAB_SIZE for pair in pairs for token in pair)


def test_temperature_0_takes_the_likeliest_token_at_every_step(model):
    text = PROMPT.tolist()
    for token in drawn(model, temperature=0, max_tokens=CONTEXT - len(text) + 1)[0].tolist():
        assert token == FIRST + int(model.scores(torch.tensor([text]))[0, -1, FIRST:].argmax())
        text.append(token)


def test_a_sample_is_the_same_whatever_is_drawn_beside_it(model):
    together = drawn(model, 5)
    alone = list(sample(model, PROMPT, SamplingConfig(max_tokens=12), samples=[3], seed=0, layouts=Layouts()))
    assert together[3].tolist() == torch.cat(alone).tolist()
    assert len({tuple(row) for row in together.tolist()}) == 5


def continuing_models():
    """Every causal model whose layers keep another kind of state."""
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": CONTEXT}
    found = {"recurrent": RecurrentLanguageModelConfig(embedding_size=8, hidden_size=12, max_length=CONTEXT)}
    found["recurrent/gru"] = RecurrentLanguageModelConfig(cell="gru", hidden_size=12, max_length=CONTEXT)
    found["feed_forward/convolution"] = DecoderOnlyConfig(**sizes, feed_forward=ConvolutionalFeedForwardConfig())
    for kind, mixer in MixerConfig.kinds().items():
        config = DecoderOnlyConfig(**sizes, self_attention=mixer())
        with contextlib.suppress(ValueError):
            over_text(config, VOCAB_SIZE)
            found[kind] = config
    return found


CONTINUING = continuing_models()


def test_models_with_every_kind_of_state_continue():
    kinds = {"scaled_dot_product", "general", "additive", "segment", "window", "linear", "lsh", "convolution", "dense"}
    assert kinds | {"recurrent", "recurrent/gru", "feed_forward/convolution"} <= set(CONTINUING)


@pytest.mark.parametrize("config", CONTINUING.values(), ids=CONTINUING)
def test_a_prompt_is_read_once_for_all_samples(monkeypatch, config):
    torch.manual_seed(3)
    model = over_text(config, VOCAB_SIZE).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    alone = [list(sample(model, PROMPT, TEN, samples=[number], seed=0, layouts=Layouts())) for number in range(3)]
    rows, step = [], model.step
    monkeypatch.setattr(model, "step", lambda tokens, state: (rows.append(tuple(tokens.shape)), step(tokens, state))[1])
    together = drawn(model, 3, max_tokens=10)
    assert rows[:3] == [(1, 3), (3, 1), (3, 1)]
    assert together.tolist() == [torch.cat(tokens).tolist() for tokens in alone]


def test_the_seed_decides(model):
    assert torch.equal(drawn(model, 3, seed=1), drawn(model, 3, seed=1))
    assert not torch.equal(drawn(model, 3, seed=1), drawn(model, 3, seed=2))


@pytest.mark.parametrize("length", [1, 7, 8, 9, 30])
def test_beyond_its_context_it_goes_on_from_the_newer_half(model, length):
    """Against a model that remembers nothing and reads all it may see at every step."""
    prompt = (torch.arange(length) % 6) + FIRST
    seen = prompt[-CONTEXT:].tolist()
    for token in drawn(model, prompt=prompt, temperature=0, max_tokens=30)[0].tolist():
        if len(seen) > CONTEXT:
            seen = seen[-CONTEXT // 2 :]
        assert token == FIRST + int(model.scores(torch.tensor([seen]))[0, -1, FIRST:].argmax())
        seen.append(token)


def test_special_tokens_are_never_drawn(model):
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.weight[:FIRST] += 3 * model.head.weight[FIRST:].mean(0).sign()
    assert drawn(model, 50, temperature=5.0).min() >= FIRST


def test_asking_for_the_next_token_leaves_gradients_as_they_were(model):
    tokens = sample(model, PROMPT, SamplingConfig(), samples=[0], seed=0, layouts=Layouts())
    next(tokens)
    assert not torch.is_inference_mode_enabled()


def test_an_empty_prompt_is_one_line(model):
    with pytest.raises(DataError, match="the prompt is empty: give a prompt"):
        drawn(model, prompt=PROMPT[:0])


@pytest.mark.parametrize(
    "field",
    [{"temperature": -1}, {"temperature": math.inf}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.1}, {"max_tokens": 0}],
)
def test_what_makes_no_distribution_is_refused(field):
    with pytest.raises(ValidationError):
        SamplingConfig(**field)


def test_a_model_that_carries_a_state_forgets_nothing_past_its_windows():
    torch.manual_seed(3)
    sizes = {"embedding_size": 8, "hidden_size": 12, "max_length": CONTEXT}
    carrier = over_text(RecurrentLanguageModelConfig(**sizes), VOCAB_SIZE).eval()
    for parameter in carrier.parameters():
        torch.nn.init.normal_(parameter, std=2)
    prompt = torch.arange(FIRST, VOCAB_SIZE).repeat(3)[: 2 * CONTEXT + 1]
    written = drawn(carrier, prompt=prompt, temperature=0, max_tokens=3 * CONTEXT)[0]
    text = torch.cat([prompt, written])[None]
    with torch.no_grad():
        logits = carrier.scores(text[:, :-1])[0, len(prompt) - 1 :, FIRST:]
    assert torch.equal(written, logits.argmax(-1) + FIRST)
    assert len(set(written.tolist())) > 1


def test_top_p_takes_its_share_of_what_top_k_has_left():
    """Of .4 and .3 the first holds .57: taken of all four, .55 would leave both."""
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    found = SamplingConfig(top_k=2, top_p=0.55).distribution(logits)
    assert found.tolist() == pytest.approx([1, 0, 0, 0])
    found = SamplingConfig(top_k=2, top_p=0.58).distribution(logits)
    assert found.tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0])
