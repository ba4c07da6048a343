"""Simple models beside those of the recipes, on the same files: one module for each data set.

    .venv/bin/python -m benchmarks.baselines.NAME

Each module has `measure()`, which returns the scores on the recipe's test set by the name of the model. Whatever is
chosen is chosen on training or validation data.
"""
