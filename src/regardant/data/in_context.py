"""Text for in-context learning: prompts whose examples alone determine the answer.

A line of the text is a function from letters to digits, `a3 c7 a3 b0`: each letter is followed by its digit. Functions
are drawn anew for each line, so a digit is predictable only if its letter stands earlier in the line. A model
that reads a line has to learn the function from the examples so far (Brown et al. 2020, "Language models are few-shot
learners", https://arxiv.org/abs/2005.14165; as recall by induction heads: Olsson et al. 2022,
https://arxiv.org/abs/2209.11895).
"""

from collections.abc import Iterator
from random import Random
from typing import Literal

from pydantic import Field

from regardant.data.text import CutTextConfig
from regardant.data.toys import DIGITS, LETTERS

LINES = 1000
"""Number of lines in a piece of the text."""


class InContextConfig(CutTextConfig):
    """Lines of letters and their digits, by a function of letters that is drawn anew for each line."""

    kind: Literal["in_context"] = "in_context"

    letters: int = Field(5, ge=1, le=len(LETTERS))
    """Number of different letters: the first ones of the alphabet."""

    examples: int = Field(15, gt=1)
    """Number of letters of a line, each with its digit. Preferably odd: the length of a line then has no divisor in
    common with a context length that is a power of two, so that windows begin at all places of a line."""

    lines: int = Field(40_000, gt=0)
    """Number of lines."""

    def pieces(self) -> Iterator[str]:
        random = Random(0)  # the same text for all training seeds, as if read from a file
        for start in range(0, self.lines, LINES):
            lines = (" ".join(self.draw(random, self.examples)) for _ in range(min(LINES, self.lines - start)))
            yield "".join(f"{line}\n" for line in lines)

    def draw(self, random: Random, examples: int) -> list[str]:
        """Return examples of a function: a letter and its digit each."""
        digits = random.choices(DIGITS, k=self.letters)
        drawn = random.choices(range(self.letters), k=examples)
        return [LETTERS[letter] + digits[letter] for letter in drawn]
