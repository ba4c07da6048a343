"""Named places in a model at which one may look: identity modules that a forward hook can listen to.

Nothing is recorded here and nothing costs more than a call while nobody listens, so looking never changes what runs.
"""

from torch import Tensor, nn

from regardant.attention import Attention, View


class AttentionPlace(nn.Module):
    """Where queries meet keys. Its hook gets (q, k, view), with the mechanism that weighs them at hand."""

    mechanism: Attention

    def __init__(self, mechanism: Attention) -> None:
        super().__init__()
        self.__dict__["mechanism"] = mechanism  # by reference: the layer owns it, the place is no second parent

    @property
    def is_watched(self) -> bool:
        """Whether anybody listens, for whom alone something would have to be computed."""
        return bool(self._forward_hooks or self._forward_pre_hooks)

    def forward(self, q: Tensor, k: Tensor, view: View) -> None:
        """q [B, H, Q, D], k [B, G, K, D]."""
