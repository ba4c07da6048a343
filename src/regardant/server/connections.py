"""Timeouts for slow clients: one for receiving a request, one for each pause while the response is written.

uvicorn itself closes only connections that are idle between requests.
"""

from asyncio import TimerHandle, Transport

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SPARE = 100
"""Connections beyond `limit_concurrency` that get status 503. Further ones are closed without a response."""


def timed_protocol(read_seconds: float) -> type[H11Protocol]:
    """Return the protocol class that closes a connection if one of the timeouts, `read_seconds`, expires."""

    class TimedProtocol(H11Protocol):
        """HTTP/1.1 with timeouts for receiving a request, and for each pause while the response is written."""

        reading: TimerHandle | None = None
        writing: TimerHandle | None = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency + SPARE:
                self.transport.abort()
            self.reading = self._timer()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                self._stop_reading()
            elif self.reading is None:  # another request on this connection has begun
                self.reading = self._timer()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.SEND_BODY and self.reading is None:  # of a pipelined request
                self.reading = self._timer()

        def pause_writing(self) -> None:
            super().pause_writing()
            self.writing = self._timer()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stop_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_reading()
            self._stop_writing()
            super().connection_lost(exc)

        def _timer(self) -> TimerHandle:
            return self.loop.call_later(read_seconds, self.transport.abort)

        def _stop_reading(self) -> None:
            if self.reading is not None:
                self.reading.cancel()
                self.reading = None

        def _stop_writing(self) -> None:
            if self.writing is not None:
                self.writing.cancel()
                self.writing = None

    return TimedProtocol
