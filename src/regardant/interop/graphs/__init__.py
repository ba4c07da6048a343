"""Graphs of a trained model for other programs: ONNX and torch.export.

`modules` wraps a model in modules whose inputs and outputs are tensors alone; `onnx` and `torch_program` export these.
"""
