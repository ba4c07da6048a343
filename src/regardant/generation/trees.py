"""Well-formed trees: the constraint that a text is one tree in brackets, such as "(S (NP a cat )NP (VP sleeps )VP )S".

A bracket is closed by its own label and holds at least one word, and the text ends when its first bracket is closed.
Near the length limit only tokens that let the open brackets be closed may follow, so that every text ends as a tree.

Shape legend: B sentences, W beams, t tokens written, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from regardant.data.vocabulary import EOS, SPECIAL_TOKENS

ANY = -1
"""Label of a closing bracket without one, which closes any bracket."""


@dataclass(frozen=True)
class TreeTokens:
    """Roles of the tokens of a vocabulary in a tree: opening bracket, closing bracket or word."""

    depth: Tensor
    """Change of depth, [V] int64: 1 for an opening bracket, -1 for a closing one, 0 for a word."""
    labels: Tensor
    """Number of a bracket's label, [V] int64: `ANY` for a closing bracket without a label and for a word."""
    possible: Tensor
    """True for a bracket or a word, False for special and all other tokens, [V] bool."""

    @classmethod
    def of(cls, tokens: Sequence[str], device: torch.device) -> Self:
        """Return the roles of these tokens. The special tokens must come first.

        The space that a tokenizer keeps before a token is ignored.
        """
        numbers: dict[str, int] = {}
        depth, labels, possible = [], [], []
        for number, token in enumerate(one.removeprefix(" ") for one in tokens):
            opens, closes = token.startswith("("), token.startswith(")")
            label = token[1:] if opens or closes else ""
            depth.append(int(opens) - int(closes))
            labels.append(numbers.setdefault(label, len(numbers)) if label else ANY)
            whole = token != "(" and not any(sign in "()" or sign.isspace() for sign in token[1:])
            possible.append(number >= len(SPECIAL_TOKENS) and whole)
        return cls(
            torch.tensor(depth, device=device),
            torch.tensor(labels, device=device),
            torch.tensor(possible, device=device),
        )

    def forbidden(self, written: Tensor, limits: Tensor) -> Tensor:
        """Return the mask of tokens that may not follow the written ones: [B, W, V] bool from [B, W, t] and limits [B].

        `limits` are the maximum numbers of tokens of each text, EOS counted. Every token may follow a text with which
        no tree begins, such as some forced prefixes.
        """
        depths = self.depth[written].cumsum(-1)
        now = depths[..., -1:] if written.shape[-1] else written.new_zeros(*written.shape[:-1], 1)
        left = limits[:, None, None] - written.shape[-1] - 1  # tokens after the next one
        opening, word, closing = (self.possible & (self.depth == kind) for kind in (1, 0, -1))
        begins = written.shape[-1] == 0
        allowed = opening & (left >= now + 3) & ((now > 0) | begins)  # a word, a closing bracket and EOS come after it
        allowed = allowed | (word & (now > 0) & (left >= now + 1))
        if not begins:
            place = torch.where((self.depth[written] == 1) & (depths == now), 1, 0).cumsum(-1).argmax(-1, keepdim=True)
            label = self.labels[written.gather(-1, place)]
            holds_word = (self.depth[written[..., -1:]] != 1) & (now > 0)
            allowed = allowed | (closing & holds_word & ((self.labels == label) | (self.labels == ANY)))
            allowed[..., EOS] = now[..., 0] == 0
            no_tree = (depths[..., :-1] <= 0).any(-1, keepdim=True) | (depths[..., :1] != 1)
            allowed = allowed | no_tree
        return ~allowed & allowed.any(-1, keepdim=True)
