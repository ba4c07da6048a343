"""Log lines of a server, each a JSON object."""

import json


def log_line(event: str, **fields: object) -> str:
    """Return the log line of an event."""
    return json.dumps({"event": event, **fields}, ensure_ascii=False)
