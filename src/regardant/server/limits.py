"""Limits on requests, checked before anything is computed, and the error of a refused request."""

from collections.abc import Sequence
from dataclasses import dataclass

from regardant.errors import RegardantError

RETRY_SECONDS = 1
"""Seconds after which a client may retry: the queue was full, the rate limit exceeded, or memory ran out."""


class Refusal(RegardantError):
    """A refused request, with its HTTP status and the seconds after which the client may retry."""

    def __init__(self, message: str, status: int = 422, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


@dataclass(frozen=True)
class Limits:
    """Limits of a server."""

    max_batch: int = 32
    """Maximum number of rows (texts, items) of a batch, and of a request."""
    max_wait_ms: float = 5.0
    """Milliseconds that a row waits before a batch that is not full is computed."""
    max_queue: int = 256
    """Maximum number of rows that wait for a run. Further requests get status 429."""
    max_rate: int | None = None
    """Maximum number of requests per second from one address. Further ones get status 429. None: no limit."""
    timeout: float = 30.0
    """Seconds after which a request gets status 504."""
    max_characters: int = 4000
    """Maximum number of characters of a text."""
    max_beam_size: int = 10
    """Largest beam size, and the most translations of a text."""
    max_tokens: int = 1000
    """Maximum number of tokens that a language model generates in one request."""
    body_bytes: int = 4 * 2**20
    """Maximum size of a request body [bytes]."""
    max_pixels: int = 4_000_000
    """Maximum number of pixels of an image file."""
    inspected_numbers: int = 1_000_000
    """Maximum number of attention weights of an inspection."""
    connections: int = 1000
    """Maximum number of open connections. A request on a further one gets status 503."""
    read_seconds: float = 10.0
    """Timeout in seconds for sending a request, and for receiving each part of the response."""

    def require_rows(self, name: str, rows: Sequence[object]) -> None:
        """Raise Refusal for more rows than a batch holds."""
        if len(rows) > self.max_batch:
            raise Refusal(f"{name} has {len(rows)} entries, allowed are {self.max_batch}: send several requests")

    def require_text(self, name: str, text: str) -> None:
        """Raise Refusal for a text that is too long, or that has a lone surrogate."""
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
