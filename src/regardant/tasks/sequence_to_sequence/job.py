"""Job of tasks that answer an item by a text: batches, a loss, and a validation on decoded text."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from regardant.evaluation.texts import OF_RAW_REFERENCES, TEXT_SCORES
from regardant.evaluation.trees import require_trees
from regardant.generation.search import generate, require_repeated_brackets
from regardant.generation.trees import TreeTokens
from regardant.layers.linear import Layouts
from regardant.models import SequenceToSequenceModel
from regardant.tasks.base import VALIDATION_SHARE, TaskJob
from regardant.tasks.observation import PROBED, SAMPLES, entropy_of_heads
from regardant.tasks.sequence_to_sequence.config import TextAnswerConfig
from regardant.tasks.sequence_to_sequence.corpus import Corpus, SequencePairBatches
from regardant.tasks.sequence_to_sequence.generator import in_one_line

DECODING_COST = 3.0
"""Cost of validating a token, with its greedy decoding, in training tokens: 2.0 on Multi30k and two cores, and a margin
for other models."""

VALIDATION_TOKENS = 8192
"""Maximum number of tokens of a validation batch. It also has at most twice those of a training batch, which holds
gradients too."""


class SequenceToSequenceJob(TaskJob):
    """Job that trains on pairs and validates on texts of greedy decoding."""

    unit = "target token"

    def __init__(self, config: TextAnswerConfig, corpus: Corpus, model: SequenceToSequenceModel) -> None:
        max_length, seed, batch_tokens = config.model.max_length, config.seed, config.training.batch_tokens
        batches = SequencePairBatches(corpus.train, batch_tokens=batch_tokens, max_length=max_length, seed=seed)
        validation_tokens = min(VALIDATION_TOKENS, 2 * batch_tokens)
        self.validation = SequencePairBatches(
            corpus.validation, batch_tokens=validation_tokens, max_length=max_length, seed=seed
        )
        # At once, and not after the first hundreds of updates.
        require_repeated_brackets(config.generation)
        if "bracket_f1" in config.evaluation.metrics:
            require_trees(corpus.references)
        self.corpus = corpus
        self.validation_is_chosen = False
        self.samples: list[dict[str, str]] = []
        super().__init__(config, model, batches, validation_cost=self.validation_cost)

    @property
    def validation_cost(self) -> float:
        """Cost of a validation in trained tokens."""
        return DECODING_COST * self.validation.targets_per_epoch

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Return loss (nats per token, without label smoothing), perplexity, and the scores of greedy decoding."""
        assert isinstance(model, SequenceToSequenceModel)
        greedy = self.config.generation.replaced(beam_size=1, nbest=1, length_penalty=0)
        tokenizer, longest = self.corpus.tokenizer, self.config.model.max_length - 1  # one fewer, as in TextGenerator
        trees = TreeTokens.of(tokenizer.pieces, device) if greedy.trees else None
        total, tokens, hypotheses, order = 0.0, 0, [], []
        with _layouts_on_cpus(device):
            for planned in self.validation.plan(0):
                batch = self.validation.load(planned).to(device)
                loss = model(**batch.inputs, targets=batch.targets)
                total, tokens = total + float(loss.plain), tokens + int(loss.count)
                lengths = self.validation.source_lengths[planned].tolist()
                found = generate(model, batch.source, greedy, max_length=longest, lengths=lengths, trees=trees)
                hypotheses += [tokenizer.decode(best.tokens) for best, *_ in found]
                order += self.validation.kept[planned].tolist()
        self._keep_samples(dict(zip(order, hypotheses, strict=True)))
        mean, scores = total / tokens, self._scores(hypotheses, [self.corpus.references[i] for i in order])
        return {"loss": mean, "perplexity": math.exp(min(mean, 50.0)), **scores}

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """Return the entropy of every head over a few validation pairs, and texts that the last validation wrote."""
        assert isinstance(model, SequenceToSequenceModel)
        batch = self.validation.pairs.batch(self.validation.kept[:PROBED]).to(device)
        return {"entropy": entropy_of_heads(model, batch.read), "samples": self.samples}

    def _scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Return the scores that the recipe names, with references normalised as the tokenizer does."""
        tokenizer, compared = self.corpus.tokenizer, self.config.evaluation
        texts = [in_one_line(one) for one in hypotheses]
        normalised = [in_one_line(tokenizer.normalise(one)) for one in references]
        raw = [one.lower() for one in references] if tokenizer.config.lowercase else references
        return {
            name: TEXT_SCORES[name](texts, raw if name in OF_RAW_REFERENCES else normalised, compared)
            for name in compared.metrics
        }

    def _keep_samples(self, texts: dict[int, str]) -> None:
        sources, references = self.corpus.sources, self.corpus.references
        self.samples = [
            {"source": sources[i], "reference": references[i], "translation": texts[i]}
            for i in self.validation.kept[:SAMPLES].tolist()
        ]

    @property
    def validation_targets(self) -> int:
        return self.validation.targets_per_epoch

    def validate_on(self, targets: int) -> None:
        self.validation.thin(targets)
        self.validate_every = self.interval(self.validation_cost)
        self.validation_is_chosen = True

    def bound_validation(self, updates: int) -> int | None:
        """Leave pairs out if a validation takes more than VALIDATION_SHARE of so many updates. Return the number left.

        None: none is left out, or `validate_on` has already chosen.
        """
        most = VALIDATION_SHARE * updates * self.targets_per_update / DECODING_COST
        if self.validation_is_chosen or self.validation.targets_per_epoch <= most:
            return None
        self.validate_on(int(most))
        return len(self.validation.kept)

    def warm_up_validation(self, device: torch.device) -> None:
        """Run a part of a validation: the loss of the largest batches, and the first decoding step of each.

        The cache of later steps, which grows with the targets, is not measured.
        """
        for planned in self.validation.largest_batches():
            batch = self.validation.load(planned).to(device)
            with torch.inference_mode(), _layouts_on_cpus(device):
                self.model(**batch.inputs, targets=batch.targets)
                state = self.model.start(self.model.encode(batch.source), 1, self.config.model.max_length)
                self.model.step(batch.target[:, :1], state)


@contextmanager
def _layouts_on_cpus(device: torch.device) -> Iterator[None]:
    """Multiply by copies of the weights on a CPU: autocast would convert every weight at every step of decoding.

    The copies are dropped at the end, since a fused optimizer changes weights without a new version.
    """
    if device.type != "cpu":
        yield
        return
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    with torch.autocast("cpu", enabled=False), Layouts(dtype).in_use():
        yield
