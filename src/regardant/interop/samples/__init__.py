"""Programs that use an exported model without Regardant. An export has one of them, as sample.py.

Each has a class `Model` with `answers(texts)` and `scores(texts, references)`, by which an export is compared with its
run. Run as a program, a sample answers the lines of standard input.
"""
