"""Limits of a request, checked before any of it is computed, and the error of one that is refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from regardant.errors import RegardantError

RETRY_SECONDS = 1
"""Seconds after which a client may try again when the queue is full."""


class Refusal(RegardantError):
    """A request that is not answered, with its HTTP status."""

    def __init__(self, message: str, status: int = 422, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


@dataclass(frozen=True)
class Limits:
    """Limits of a server."""

    max_batch: int = 32
    """Rows (texts, items) that are computed at once. A request has at most as many."""
    max_wait_ms: float = 5.0
    """Milliseconds that a row waits for others before a batch that is not full is computed."""
    max_queue: int = 256
    """Rows of a run that wait. A request beyond them is answered by 429."""
    max_rate: int | None = None
    """Requests of one address in a second. Further ones are answered by 429. None: no limit."""
    timeout: float = 30.0
    """Seconds after which a request is answered by 504."""
    max_characters: int = 4000
    """Characters of a text."""
    max_beam_size: int = 10
    """Largest beam size, and the most translations of a text."""
    max_tokens: int = 1000
    """Tokens that a language model writes in one request."""
    body_bytes: int = 4 * 2**20
    """Bytes of the body of a request."""
    max_pixels: int = 4_000_000
    """Pixels of a picture in a file."""
    inspected_numbers: int = 1_000_000
    """Attention weights of an inspection."""
    connections: int = 1000
    """Connections at once. A request on a further one is answered by 503."""
    read_seconds: float = 10.0
    """Seconds in which a client must have sent a request and taken each part of its answer."""

    def require_rows(self, name: str, rows: Sequence[object]) -> None:
        """Raise Refusal for more rows than a batch holds."""
        if len(rows) > self.max_batch:
            raise Refusal(f"{name} has {len(rows)} entries, allowed are {self.max_batch}: send several requests")

    def require_text(self, name: str, text: str) -> None:
        """Raise Refusal for a text that is too long, or that has half of a character."""
        if len(text) > self.max_characters:
            raise Refusal(
                f"{name} has {len(text):,} characters, allowed are {self.max_characters:,}: shorten or split it"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal(f"{name} has half of a character (a lone surrogate), which is no text: send UTF-8") from error

    def require_picture(self, name: str, shape: tuple[int, int, int]) -> None:
        """Raise Refusal for a picture with too many pixels."""
        if shape[0] * shape[1] > self.max_pixels:
            raise Refusal(
                f"{name} is a picture of {shape[0]:,} x {shape[1]:,} pixels, allowed are {self.max_pixels:,}: make it "
                "smaller"
            )

    def require_texts(self, name: str, texts: Sequence[str]) -> None:
        """Raise Refusal for too many texts and for one that is too long."""
        self.require_rows(name, texts)
        for number, text in enumerate(texts):
            self.require_text(f"{name}[{number}]", text)

    def require_most(self, name: str, given: int | None, most: int) -> None:
        """Raise Refusal for a number above its limit."""
        if given is not None and given > most:
            raise Refusal(f"{name} is {given}, allowed are up to {most}: lower it")
