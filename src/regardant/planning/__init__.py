"""Decisions and measurements before training: precision, kernel, processes, compilation, and the plan of the cost."""
