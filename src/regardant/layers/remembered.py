"""What a layer remembers between two decoding steps.

Shape legend: B sentences, W beams of a sentence, N = B x W rows.
"""

from jaxtyping import Int
from torch import Tensor


class Remembered:
    """A row a beam, unless a layer keeps it otherwise."""

    def reorder(self, rows: Int[Tensor, " N2"]) -> "Remembered":
        """Row i of the result continues what was row `rows[i]`."""
        raise NotImplementedError

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> "Remembered":
        """Go on with these sentences alone, whose beams are those rows."""
        return self.reorder(rows)
