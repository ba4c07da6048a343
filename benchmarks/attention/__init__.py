"""Time, memory and error of every efficient attention."""
