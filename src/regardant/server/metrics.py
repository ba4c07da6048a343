"""Metrics of a server in the text format of Prometheus."""

from collections.abc import Callable

from regardant.errors import ConfigError

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
except ModuleNotFoundError as error:
    raise ConfigError(f"the server needs {error.name}: pip install 'regardant[serve]'") from error

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one server, in their own registry. All names begin with `regardant_`, except those of the process:
    `process_resident_memory_bytes`, ..."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter("regardant_requests", "Requests answered.", ["path", "status"], registry=registry)
        self.seconds = Histogram(
            "regardant_request_seconds", "Seconds to an answer.", ["path"], buckets=SECONDS, registry=registry
        )
        self.batch_rows = Histogram(
            "regardant_batch_rows", "Rows of a batch.", ["run"], buckets=ROWS, registry=registry
        )
        self.batch_seconds = Histogram(
            "regardant_batch_seconds", "Seconds to compute a batch.", ["run"], buckets=SECONDS, registry=registry
        )
        self.dropped = Counter(
            "regardant_dropped", "Calls not computed: client disconnected or timeout.", ["run"], registry=registry
        )
        self.reloads = Counter("regardant_reloads", "Reloads of runs.", ["run", "outcome"], registry=registry)
        self._queue = Gauge("regardant_queue_rows", "Rows in the queue.", ["run"], registry=registry)
        self._active = Gauge("regardant_active_requests", "Requests in progress.", registry=registry)

    def watch_queue(self, run: str, rows_waiting: Callable[[], int]) -> None:
        """Report the number of rows in a run's queue."""
        self._queue.labels(run).set_function(rows_waiting)

    def watch_active(self, active: Callable[[], int]) -> None:
        """Report the number of requests that are being answered."""
        self._active.set_function(active)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self.registry)
