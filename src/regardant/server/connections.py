"""Limits of a connection: timeouts for receiving a request and for each pause while the response is written, and the
most bytes after a request that is being answered.

uvicorn itself closes only connections that are idle between requests.
"""

from asyncio import TimerHandle, Transport

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SPARE = 100
"""Connections beyond `limit_concurrency` that get status 503. Further ones are closed without a response."""

MOST_PIPELINED = 65_536
"""Most bytes after a request before its response is complete. A connection that sends more is closed."""


def timed_protocol(read_seconds: float) -> type[H11Protocol]:
    """Return the protocol class that closes a connection if one of the timeouts, `read_seconds`, expires, or if more
    than `MOST_PIPELINED` bytes follow a request."""

    class TimedProtocol(H11Protocol):
        """HTTP/1.1 with timeouts for receiving a request and for each pause while the response is written, and a limit
        on bytes after a request."""

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
                # h11 keeps these bytes, and uvicorn reads more at each receive() of the application
                if not self.transport.is_closing() and len(self.conn.trailing_data[0]) > MOST_PIPELINED:
                    self.transport.abort()
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
