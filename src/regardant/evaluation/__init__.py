"""Evaluation: scores of each task, significance tests and power laws, by established libraries where there are any."""
