"""AdamW with weight decay, Adam with an L2 penalty, and Muon. Token embeddings, norms and biases do not decay.

Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101, alg. 2.
Jordan et al. 2024, "Muon", https://kellerjordan.github.io/posts/muon. Its steps are scaled to the length of AdamW's
(Liu et al. 2025, https://arxiv.org/abs/2502.16982, eq. 4), so that one learning rate suits both.

Parts of a model may learn at rates of their own, as in discriminative fine-tuning (Howard and Ruder 2018, "Universal
Language Model Fine-tuning for Text Classification", https://arxiv.org/abs/1801.06146, section 3.2).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim.optimizer import ParamsT

from regardant.config import Variants
from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError
from regardant.training.devices import multiplies_bfloat16
from regardant.training.sharded_weights import local

_Share = Annotated[float, Field(ge=0, lt=1)]
_Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Factors = Mapping[nn.Parameter, float]
"""Factors on the learning rate. A parameter without one has 1."""


class OptimizerConfig(Variants):
    """Fields of every optimizer. The defaults are those of Vaswani et al. 2017, section 5.3."""

    default_kind: ClassVar[str] = "adamw"

    betas: tuple[_Share, _Share] = (0.9, 0.98)
    """Decay rates of the running means of gradients and of their squares."""

    eps: float = Field(1e-9, gt=0)
    """Term added to the root of the mean square, against division by zero. Small enough for gradients of a loss per
    token, and safe in float32, in which the optimizer works under mixed precision too."""

    weight_decay: float = Field(0.0, ge=0)
    """Weight decay: share, times the learning rate, by which an update shrinks parameters of two or more dimensions:
    matrices, learned positions, tables of position biases. Token embeddings do not decay, nor do parameters of one
    dimension, such as norms and biases. 0 is plain Adam, as in the paper; 0.01 to 0.1 is usual for large models."""

    rate_factors: dict[str, _Factor] = Field({})
    """Factors on the learning rate by part of the model, as {encoder: 0.1}. Other parts have 1. The factor of
    encoder.layers.0 has precedence over that of encoder."""

    def build(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """Return the optimizers of a model's trainable parameters.

        Parameters keep the order of `model.parameters()`, tied ones once, so that the state of one build loads into
        another. The learning rate is 0 until the schedule sets it, before each update, times the `factor` of a group.

        Raises:
            ConfigError: `rate_factors` names a part that the model does not have.
        """
        raise NotImplementedError

    def factors(self, model: nn.Module) -> Factors:
        """Return the factors of the parameters. Raises ConfigError as `build` does."""
        parts = dict(model.named_modules())
        found: dict[nn.Parameter, float] = {}
        for name in sorted(self.rate_factors, key=len):
            if not name or name not in parts:
                raise ConfigError(
                    f"training.optimizer.rate_factors: the model has no part {name!r}; it has "
                    f"{', '.join(part for part, _ in model.named_children())} and parts of these"
                    f"{did_you_mean(name, parts)}"
                )
            found |= dict.fromkeys(parts[name].parameters(), self.rate_factors[name])
        return found


class AdamWConfig(OptimizerConfig):
    """Adam with decoupled weight decay."""

    kind: Literal["adamw"] = "adamw"

    def build(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """Return one optimizer: groups of parameters that decay, then of those that do not."""
        return [_adam(torch.optim.AdamW, *_decayed_and_kept(model), self.factors(model), self)]


class AdamConfig(OptimizerConfig):
    """Adam whose weight decay is an L2 penalty: `weight_decay` times a parameter is added to its gradient and divided
    with it by the root of the mean square."""

    kind: Literal["adam"] = "adam"

    def build(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """Return one optimizer: groups of parameters that decay, then of those that do not."""
        return [_adam(torch.optim.Adam, *_decayed_and_kept(model), self.factors(model), self)]


class MuonConfig(OptimizerConfig):
    """Muon for the matrices of linear layers, and AdamW with the same fields for all other parameters.

    Jordan et al. leave the first and the last layer to AdamW, and step queries, keys and values one by one. Here Muon
    steps every linear layer, and the one matrix of queries, keys and values.
    """

    kind: Literal["muon"] = "muon"

    momentum: _Share = 0.95
    """Momentum: decay rate of the running mean of a matrix's gradients."""

    def build(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """Return AdamW, then Muon if there are matrices for it."""
        linear = {module.weight for module in model.modules() if isinstance(module, nn.Linear)}
        decayed, kept = _decayed_and_kept(model)
        matrices = [parameter for parameter in decayed if parameter in linear]
        others = [parameter for parameter in decayed if parameter not in linear]
        factors = self.factors(model)
        adamw = _adam(torch.optim.AdamW, others, kept, factors, self)
        return [adamw, Muon(_groups(matrices, factors), self.momentum, self.weight_decay)] if matrices else [adamw]


class Muon(torch.optim.Muon):
    """PyTorch's Muon, faster for many small matrices: those of one shape are orthogonalised together, which takes a
    third less time."""

    finite: Tensor | None = None
    """A bool tensor [], set before a step: False lets the step change nothing. None: the gradients are finite."""

    def __init__(self, parameters: ParamsT, momentum: float, weight_decay: float) -> None:
        super().__init__(
            parameters, lr=0.0, momentum=momentum, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for matrices in alike.values():
                self._step(matrices, group)

    def _step(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        means = [self._mean_of(matrix) for matrix in matrices]
        if self.finite is not None:  # a gradient that is equal to the mean leaves the mean as it is
            gradients = [gradient.where(self.finite, mean) for gradient, mean in zip(gradients, means, strict=True)]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, means, group["momentum"])  # Nesterov's momentum
        steps = orthogonalise(torch.stack(ahead), group["ns_coefficients"], group["ns_steps"], group["eps"])
        decay: float | Tensor = group["lr"] * group["weight_decay"]
        if self.finite is not None:
            steps, decay = steps * self.finite, decay * self.finite
        length = 0.2 * max(matrices[0].shape) ** 0.5
        torch._foreach_mul_(matrices, 1 - decay)
        torch._foreach_add_(matrices, list(steps.to(matrices[0].dtype)), alpha=-group["lr"] * length)

    def _mean_of(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]


def step_where(optimizer: torch.optim.Optimizer, finite: Tensor) -> None:
    """Step an optimizer if `finite` [], a tensor on the device of its parameters, without a wait for the device.

    If `finite` is False, a step changes nothing: Adam's kernel skips it (`found_inf`), as under torch.amp.GradScaler.
    But Adam of a sharded model steps with gradients of zero.
    """
    inner: Any = getattr(optimizer, "optimizer", optimizer)  # Fabric wraps optimizers
    parameters = [one for group in inner.param_groups for one in group["params"] if one.grad is not None]
    if isinstance(inner, torch.optim.Adam) and all(local(one) is one for one in parameters):
        inner.found_inf = (~finite).float()  # type: ignore[attr-defined]
    elif isinstance(inner, Muon):
        inner.finite = finite
    else:
        for parameter in parameters:
            local(parameter.grad).masked_fill_(~finite, 0)
    optimizer.step()


def orthogonalise(matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return matrices [N, R, C] with all singular values near 1, by Newton-Schulz iteration as in torch.optim.Muon.

    It runs in bfloat16 if the device multiplies bfloat16, else in float32, which is far faster there.
    """
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.bfloat16() if multiplies_bfloat16(matrices.device) else matrices.float()
    x = x.mT if tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def _decayed_and_kept(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the trainable parameters that decay, and the others.

    Those of two or more dimensions decay, except the weights of nn.Embedding, which only tokens have. Tables of
    positions and of their biases are no nn.Embedding, and decay.
    """
    embeddings = {module.weight for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            shrinks = parameter.ndim >= 2 and parameter not in embeddings
            (decayed if shrinks else kept).append(parameter)
    return decayed, kept


def _groups(parameters: Iterable[nn.Parameter], factors: Factors, **fields: Any) -> list[dict[str, Any]]:
    """Return a group for each factor, the first one for 1."""
    groups: dict[float, list[nn.Parameter]] = {1.0: []}
    for parameter in parameters:
        groups.setdefault(factors.get(parameter, 1.0), []).append(parameter)
    return [{"params": members, "factor": factor, **fields} for factor, members in groups.items()]


def _adam(
    kind: type[torch.optim.Adam],  # AdamW derives from Adam
    decayed: list[nn.Parameter],
    kept: list[nn.Parameter],
    factors: Factors,
    config: OptimizerConfig,
) -> torch.optim.Optimizer:
    return kind(
        [*_groups(decayed, factors, weight_decay=config.weight_decay), *_groups(kept, factors, weight_decay=0.0)],
        lr=0.0,
        betas=config.betas,
        eps=config.eps,
        fused=True,
    )
