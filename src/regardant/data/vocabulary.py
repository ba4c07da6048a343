"""The special tokens, whose ids every vocabulary of the project starts with."""

PAD = 0
"""Padding of a batch; never attended to, never counted in a loss."""
SOS = 1
"""Start of every target."""
EOS = 2
"""End of every source and every target."""
UNK = 3
"""Unknown token, for text that the tokenizer cannot encode."""
MASK = 4
"""Mask in place of a token to predict."""

NEVER_WRITTEN = (PAD, SOS, UNK, MASK)
"""Tokens that a search never generates."""

SPECIAL_TOKENS = ("<pad>", "<sos>", "<eos>", "<unk>", "<mask>")
"""Names of the special tokens, in the order of their ids."""
