"""Is attention an explanation? The measurements of Jain and Wallace 2019, https://arxiv.org/abs/1902.10186.

A classifier attends once, from a learned query, to the words of a sentence: to their embeddings, to the states of a
bidirectional GRU, or to the outputs of a Transformer encoder. A sentence has three cues among fillers, and the
label is the sense of most cues.

Agreement (section 4.1): Kendall's tau of the attention weights with gradient x input and with leave one out.
Permutation (section 4.2.1): how far the answer moves if the weights are permuted among the words.
Adversary (section 4.2.2): how far the weights can move while the answer stays. The paper optimises such weights; here
they are searched among the same permutations, which gives a lower bound.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regardant.attention.additive import AdditiveConfig
from regardant.inspection import Patch, agreement, capture, explain, intervene
from regardant.layers.memory_attention import MemoryAttention

from . import reader

LENGTH, FILLERS, CUES, SENSES, CUES_OF_A_SENTENCE, SIZE = 12, 12, 4, 2, 3, 64
VOCAB = SENSES * CUES + FILLERS
"""Tokens: CUES cues of each sense, then fillers."""

STEPS, RATE, SEEDS, SENTENCES, PERMUTATIONS = 400, 3e-3, 3, 100, 100
SAME = 0.01
"""Total variation distance up to which an answer counts as the same."""

ENCODERS: dict[str, Callable[[int], nn.Module]] = {
    "words alone": lambda seed: WordReader(seed),
    "recurrent": lambda seed: reader.RecurrentReader(seed, vocab_size=VOCAB, classes=SENSES),
    "Transformer": lambda seed: reader.Reader(
        seed, vocab_size=VOCAB, classes=SENSES, max_length=LENGTH, encoder={"num_layers": 1}
    ),
}


class WordReader(nn.Module):
    """Embeddings of the words in place of an encoder: a vector depends on its own word alone."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(VOCAB, SIZE)

    def read(self, tokens: Tensor) -> Tensor:
        """Return the embeddings [B, T, M]."""
        return self.embedding(tokens)


class Classifier(nn.Module):
    """An encoder, additive attention of one learned query to its vectors, and a linear layer that answers."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.query = nn.Parameter(torch.randn(1, 1, SIZE))
        self.attention = MemoryAttention(SIZE, SIZE, AdditiveConfig(), size=SIZE)
        self.answer = nn.Linear(SIZE, SENSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits [B, 1, SENSES]."""
        memory = self.attention.project(self.encoder.read(tokens), None)
        query = self.query.expand(len(tokens), -1, -1)
        scores: Tensor = self.answer(self.attention(query, memory, torch.zeros(1, dtype=torch.long)))
        return scores

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the logits [B, 1, SENSES] of a target of one token, the label. `explain` calls this method."""
        return self(source)


def measure() -> dict[str, Any]:
    """Return accuracy, agreement of explanations and effect of permuted weights, by encoder, over seeds."""
    return {
        "claim": "attention is not explanation",
        "x": list(range(len(ENCODERS))),
        "names": list(ENCODERS),
        "steps": STEPS,
        "seeds": SEEDS,
        "sentences": SENTENCES,
        "permutations": PERMUTATIONS,
        "series": reader.spreads(_found, SEEDS),
    }


def draw(generator: torch.Generator, size: int = 64) -> tuple[Tensor, Tensor]:
    """Return sentences [size, LENGTH] and the sense of most cues [size, 1]."""
    tokens = torch.randint(SENSES * CUES, VOCAB, (size, LENGTH), generator=generator)
    places = torch.rand(size, LENGTH, generator=generator).argsort(-1)[:, :CUES_OF_A_SENTENCE]
    senses = torch.randint(SENSES, (size, CUES_OF_A_SENTENCE), generator=generator)
    cues = torch.randint(CUES, (size, CUES_OF_A_SENTENCE), generator=generator)
    tokens.scatter_(1, places, senses * CUES + cues)
    return tokens, (senses.sum(-1, keepdim=True) > CUES_OF_A_SENTENCE / 2).long()


def _found(seed: int) -> dict[str, list[float]]:
    by_encoder = [_of_classifier(build(seed)) for build in ENCODERS.values()]
    return {name: [found[name] for found in by_encoder] for name in by_encoder[0]}


def _of_classifier(encoder: nn.Module) -> dict[str, float]:
    model = Classifier(encoder)
    reader.fit(model, draw, steps=STEPS, rate=RATE)
    model.eval()
    tokens, answers = draw(torch.Generator().manual_seed(9), SENTENCES)
    taus = torch.tensor([agreements(model, *one) for one in zip(tokens, answers, strict=True)])
    generator = torch.Generator().manual_seed(10)
    moved = torch.tensor([permuted(model, one, generator) for one in tokens])
    names = ("tau with gradient", "tau with leave one out", "tau of these two")
    names += ("answer moved by permuted weights", "weights moved, same answer")
    means = torch.cat([taus.nanmean(0), moved.mean(0)]).tolist()
    return {"accuracy": reader.accuracy(model, tokens, answers), **dict(zip(names, means, strict=True))}


def agreements(model: Classifier, tokens: Tensor, answer: Tensor) -> tuple[float, float, float]:
    """Return Kendall's tau of weights and gradient, weights and leave one out, gradient and leave one out.

    `tokens` [T] is a sentence, `answer` [1] its sense. A tau is nan if one of the two orders nothing.
    """
    start = answer.new_zeros(1)  # a target begins with a token that is not predicted
    found = explain(model, model.encoder.embedding, tokens, torch.cat([start, answer]))
    pairs = ((weights_of(model, tokens), found.gradient), (weights_of(model, tokens), found.ablation))
    taus = [agreement(*pair) for pair in (*pairs, (found.gradient, found.ablation))]
    first, second, third = (tau[0] if tau else float("nan") for tau in taus)
    return first, second, third


@torch.no_grad()
def weights_of(model: Classifier, tokens: Tensor) -> Tensor:
    """Return the attention weights of the words of a sentence, [1, T]."""
    with capture(model, "attention.weights") as records:
        model(tokens[None])
    return records["attention.weights"][0][0, 0]


@torch.no_grad()
def permuted(model: Classifier, tokens: Tensor, generator: torch.Generator) -> tuple[float, float]:
    """Return how far the answer moves under permuted weights, and how far weights move while the answer stays.

    The first is the median total variation distance over permutations, from 0 to 1. The second is the largest
    Jensen-Shannon divergence of weights whose answer is within SAME, in nats from 0 to log 2; 0 if there are none.
    """
    weights = weights_of(model, tokens)
    orders = torch.rand(PERMUTATIONS, weights.shape[-1], generator=generator).argsort(-1)
    others = weights[0][orders]
    plain = model(tokens[None]).softmax(-1)
    with intervene(model, Patch("attention.weights", others[:, None, None])):
        answers = model(tokens.expand(PERMUTATIONS, -1)).softmax(-1)
    distances = (answers - plain).abs().sum(-1).flatten() / 2
    same = distances <= SAME
    return float(distances.median()), float(divergence(weights, others)[same].amax() if same.any() else 0.0)


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """Return the Jensen-Shannon divergence of distributions [..., T] in nats."""
    middle = (one + other) / 2

    def relative(x: Tensor) -> Tensor:
        return (torch.xlogy(x, x) - torch.xlogy(x, middle)).sum(-1)

    return ((relative(one) + relative(other)) / 2).clamp(min=0)
