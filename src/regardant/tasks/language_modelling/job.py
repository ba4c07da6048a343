"""Job of language modelling: windows of a text, a loss, and a validation on the whole validation text."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regardant.data.text import EncodedText
from regardant.data.tokenizers import Tokenizer
from regardant.data.windows import StreamBatch, TrainingStreams, TrainingWindows, consecutive_windows
from regardant.evaluation.language import BATCH_TOKENS, characters_of_first, score_text
from regardant.models import CausalModel
from regardant.models.heads import Loss
from regardant.tasks.base import READING_COST, TaskJob
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from regardant.tasks.observation import PROBED, entropy_of_heads

PROBED_TOKENS = 4096
"""Maximum number of tokens of the windows whose attention is recorded; at least one window is."""


class LanguageModellingJob(TaskJob):
    """Job that trains on windows of a text, and validates on the whole validation text."""

    unit = "target token"

    windows: ClassVar[type[TrainingWindows | TrainingStreams]] = TrainingWindows
    """Class of the training batches."""

    def __init__(
        self, config: LanguageModellingConfig, text: EncodedText, model: CausalModel, tokenizer: Tokenizer
    ) -> None:
        self.text = text
        self.given = characters_of_first(text.tokens["validation"], tokenizer)
        """Characters of the validation text that are not scored."""
        batch_tokens, context = config.training.batch_tokens, config.model.max_length
        batches = self.windows(text.tokens["train"], context=context, batch_tokens=batch_tokens, seed=config.seed)
        super().__init__(config, model, batches, validation_cost=READING_COST * len(text.tokens["validation"]))

    def warm_up_validation(self, device: torch.device) -> None:
        """Run the first batch of a validation, which may be larger than those of training."""
        score_text(self.model, self.text.tokens["validation"][: BATCH_TOKENS + 1], 2, device)

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Return the loss in nats per token, the perplexity and the bits per character of the whole validation text."""
        assert isinstance(model, CausalModel)
        tokens, characters = self.text.tokens["validation"], self.text.characters["validation"]
        score = score_text(model, tokens, characters, device, given=self.given)
        return {
            "loss": score.loss,
            "perplexity": score.perplexity,
            "bits_per_character": score.bits_per_character,
        }

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """Return the entropy of every head over a few validation windows. Empty for a model without attention."""
        assert isinstance(model, CausalModel)
        context, tokens = self.config.model.max_length, self.text.tokens["validation"]
        rows = min(PROBED, max(1, PROBED_TOKENS // context))
        windows = next(consecutive_windows(tokens, context, rows * context)).to(device)
        entropy = entropy_of_heads(model, windows.inputs)
        return {"entropy": entropy} if entropy else {}


class StreamJob(LanguageModellingJob):
    """Job of language modelling over parallel streams, each window from the state after the one before it.

    Implements `training.job.CarriesState`. The state has no gradient: back-propagation ends at the start of a window.
    """

    windows = TrainingStreams
    batches: TrainingStreams

    def __init__(
        self, config: LanguageModellingConfig, text: EncodedText, model: CausalModel, tokenizer: Tokenizer
    ) -> None:
        super().__init__(config, text, model, tokenizer)
        self.state = model.first_state(self.batches.num_streams)
        """The state of every stream after its last window, [layers, streams, size] each."""

    def loss(self, model: nn.Module, batch: StreamBatch, device: torch.device) -> Loss:
        """Return the loss of a batch, and keep the state of its streams for the next one."""
        if batch.begins:
            self.state = self.model.first_state(self.batches.num_streams)
        before = tuple(part[:, batch.streams].to(device) for part in self.state)
        windows = batch.to(device)
        loss: Loss = model(**windows.inputs, targets=windows.targets, state=before)
        assert loss.state is not None
        self.state = tuple(_with_rows(*parts, batch.streams) for parts in zip(self.state, loss.state, strict=True))
        return loss

    def own_state(self, rank: int, size: int) -> Sequence[Tensor]:
        own = slice(rank, None, size)
        self.state = tuple(_with_rows(torch.zeros_like(part), part[:, own], own) for part in self.state)
        return self.state

    def state_dict(self) -> dict[str, Any]:
        return {"state": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = tuple(state["state"])


def _with_rows(state: Tensor, rows: Tensor, places: slice) -> Tensor:
    """Return a state [L, N, R] with other rows at some places."""
    changed = state.to(rows, copy=True)
    changed[:, places] = rows
    return changed
