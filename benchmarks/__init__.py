"""Measurements: each writes its numbers to results/, with the machine and the commit they come from."""
