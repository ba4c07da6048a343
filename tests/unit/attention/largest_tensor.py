"""Size of the largest tensor that operations make."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Context that records the number of elements of the largest tensor that any operation in it makes.

    Views make no tensor.
    """

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made
