"""Choice of the heads that a picture shows. Layers and heads count from 1."""

from collections.abc import Sequence
from dataclasses import dataclass

from regardant.errors import ConfigError
from regardant.pictures import AttentionPicture

UNITS = ("words", "pieces")
"""Units of rows and columns."""


@dataclass(frozen=True)
class ChosenHeads:
    """Choice of the heads to draw. By default all heads of all kinds of attention."""

    kind: str | None = None
    """Kind of attention, as "Cross-attention". None: all kinds, or the last one where a layer is chosen."""
    layer: int | None = None
    """Layer, from 1. None: all layers side by side."""
    head: int | None = None
    """Head, from 1. None: the mean of the layer's heads, or all heads where no layer is chosen."""
    unit: str | None = None
    """"words" or "pieces". None: words where the item has words."""

    def __bool__(self) -> bool:
        return self != ALL_HEADS

    def of(self, pictures: Sequence[AttentionPicture]) -> list[AttentionPicture]:
        """Return the chosen kinds in the chosen unit. Raises ConfigError for a kind or unit that the item lacks."""
        if self.unit is not None and self.unit not in UNITS:
            raise ConfigError(f"unit is {self.unit}: choose {' or '.join(UNITS)}")
        kinds = [one for one in pictures if self.kind is None or _plain(one.kind) == _plain(self.kind)]
        if not kinds:
            raise ConfigError(f"there is no {self.kind}: choose {', '.join(one.kind for one in pictures)}")
        if self.unit is not None and not any(one.has_words for one in kinds):
            raise ConfigError("this item has no words: leave out the unit")
        return [one if self.unit == "pieces" else one.in_words() for one in kinds]

    def place(self, picture: AttentionPicture) -> tuple[int, int | None] | None:
        """Return the chosen layer and head, counted from 0. Head None: the mean of heads. None: all heads are drawn.

        Raises ConfigError for a layer or head that the picture lacks, and for a head without its layer.
        """
        num_layers, num_heads = picture.weights.shape[:2]
        if self.layer is None and self.head is None:
            return None
        if self.layer is None and num_layers > 1:
            raise ConfigError(f"head {self.head} is chosen without a layer: choose a layer too, 1 to {num_layers}")
        layer = 1 if self.layer is None else self.layer
        for name, number, count in (("layer", layer, num_layers), ("head", self.head, num_heads)):
            if number is not None and not 1 <= number <= count:
                allowed = "1" if count == 1 else f"1 to {count}"
                raise ConfigError(f"{picture.kind} has no {name} {number}: choose {allowed}")
        return layer - 1, None if self.head is None else self.head - 1


ALL_HEADS = ChosenHeads()


def _plain(kind: str) -> str:
    return kind.lower().replace(" ", "-").replace("_", "-")
