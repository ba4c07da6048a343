"""The ids every vocabulary of the project starts with."""

PAD = 0
"""Fills a batch; never attended to, never counted in a loss."""
SOS = 1
"""Starts every target."""
EOS = 2
"""Ends every source and every target."""
UNK = 3
"""Stands for what the tokenizer cannot spell."""
MASK = 4
"""Hides a token that is to be guessed."""

NEVER_WRITTEN = (PAD, SOS, UNK, MASK)
"""Tokens that no text has: a search passes over them."""

SPECIAL_TOKENS = ("<pad>", "<sos>", "<eos>", "<unk>", "<mask>")
"""Their names, in the order of their ids."""
