"""Lines of the log while requests are served: a JSON object each."""

import json


def log_line(event: str, **fields: object) -> str:
    """Return the line of an event."""
    return json.dumps({"event": event, **fields}, ensure_ascii=False)
