"""Simple models that those of recipes are compared with, on the same files: one module for each data set.

    .venv/bin/python -m benchmarks.baselines.NAME

Each module has `measure()`, which returns the scores on the recipe's test set by the name of the model.
Hyperparameters are chosen on training or validation data.
"""
