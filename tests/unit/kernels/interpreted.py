"""Triton's interpreter, for a process of its own: it is switched on before Triton is imported.

It computes on the CPU what a kernel computes on an accelerator, slowly.
"""

import os
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent.parent.parent / ".triton"
"""Where make installs Triton for the tests: PyTorch for CPUs comes without it."""


def begin():
    """Once in a process, before anything else."""
    os.environ["TRITON_INTERPRET"] = "1"
    sys.path.insert(0, str(FOLDER))
    torch.set_num_threads(1)


def attention(q, k, v, real, scale, causal, gradient):
    """Return the mixed values and the gradients of queries, keys and values."""
    from regardant.kernels.attention import attend

    inputs = [x.requires_grad_() for x in (q, k, v)]
    mixed = attend(*inputs, real, scale, causal=causal)
    return [x.detach() for x in (mixed, *torch.autograd.grad(mixed, inputs, gradient))]


def mechanism(q, k, v, view):
    """Return what the kernel `triton` mixes where it applies, and how often it was asked."""
    from regardant.attention import scaled_dot_product
    from regardant.kernels import attention as module

    asked, attend = [], module.attend
    scaled_dot_product.available = lambda device: True
    module.attend = lambda *inputs, **options: asked.append(1) or attend(*inputs, **options)
    try:
        return scaled_dot_product.triton(q, k, v, view, 0.5), len(asked)
    finally:
        module.attend = attend


def cross_entropy(vectors, weight, targets, label_smoothing, z_loss):
    """Return the loss of a projection to a vocabulary, the plain loss, and the gradients."""
    from regardant.layers import label_smoothed_cross_entropy as module

    module.available = lambda device: True
    inputs = [x.requires_grad_() for x in (vectors, weight)]
    total, plain = module.projected_cross_entropy(*inputs, targets, label_smoothing, z_loss)
    return [x.detach() for x in (total, plain, *torch.autograd.grad(total, inputs))]


def residual(x, written, norm, rate, seed, gradient):
    """Return the write of a post-norm layer, and the gradients of what is added and of the norm."""
    from regardant.kernels.residual import add_and_norm

    inputs = [one.requires_grad_() for one in (x, written, norm.weight, norm.bias)]
    normed = add_and_norm(*inputs, norm.eps, rate, seed)
    return [one.detach() for one in (normed, *torch.autograd.grad(normed, inputs, gradient))]


def layer(write, x, written, updates):
    """Return what a residual writes at each of these updates."""
    from regardant.layers import residual as module
    from regardant.layers.dropout import share_key

    module.available = lambda device: True
    key, found = share_key(write), []
    for key.update in updates:
        found.append(write(x, lambda x: written).detach())
    return found
