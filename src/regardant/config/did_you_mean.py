"""The suggestion at the end of a message that refuses an unknown word."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: object, allowed: Iterable[str]) -> str:
    """Return "; did you mean WORD?" with the closest allowed word, or an empty string if none is close."""
    others = filter(str(word).__ne__, allowed)
    near = get_close_matches(str(word), others, n=1)
    return f"; did you mean {near[0]}?" if near else ""
