"""Graphs of a trained model for other programs: ONNX and torch.export.

`modules` shows a model as functions of tensors alone, `onnx` and `torch_program` write them, and `folder` writes what
stands beside them.
"""
