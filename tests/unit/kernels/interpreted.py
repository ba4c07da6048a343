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

    module.supports = lambda x: True
    inputs = [x.requires_grad_() for x in (vectors, weight)]
    total, plain = module.projected_cross_entropy(*inputs, targets, label_smoothing, z_loss)
    return [x.detach() for x in (total, plain, *torch.autograd.grad(total, inputs))]


def residual(x, written, norm, rate, seed, to_added, to_normed):
    """Return the sum and its norm, and the gradients of what is added and of the norm's weights."""
    from regardant.kernels.residual import add_and_norm

    inputs = [one.requires_grad_() for one in (x, written, norm.weight, norm.bias)]
    outputs = add_and_norm(*inputs, norm.eps, rate, seed, x.dtype)
    pairs = [(one, to) for one, to in zip(outputs, (to_added, to_normed), strict=True) if to is not None]
    gradients = torch.autograd.grad([one for one, _ in pairs], inputs, [to for _, to in pairs])
    return [one.detach() for one in (*outputs, *gradients)]


def relu_and_dropout(x, rate, seed, gradient):
    """Return the output and the gradient of the input."""
    from regardant.kernels import feed_forward as module

    dropped = module.relu_and_dropout(x.requires_grad_(), rate, seed)
    return dropped.detach(), *torch.autograd.grad(dropped, x, gradient)


def feed_forward(network, x):
    """Return what a feed-forward network computes in training, where its kernel runs."""
    from regardant.kernels import feed_forward as kernels
    from regardant.layers import feed_forward as module

    asked, kernel = [], kernels.relu_and_dropout
    module.supports = lambda x: True
    kernels.relu_and_dropout = lambda *inputs: asked.append(1) or kernel(*inputs)
    computed = network.train()(x).detach()
    kernels.relu_and_dropout = kernel
    assert asked
    return computed


def stream(config, x, writes, updates, fused):
    """Return what the stream of a stack ends with at each of these updates, and the gradients of x and of the norms.

    `writes` are added by one sublayer each, which reads the stream through the norm of its residual.
    """
    from regardant.layers import residual as module
    from regardant.layers.dropout import share_key

    module.supports = lambda x: fused
    torch.manual_seed(0)
    residuals = torch.nn.ModuleList(config.build_residual(ends_layer=True) for _ in writes)
    for parameter in residuals.parameters():
        torch.nn.init.normal_(parameter)
    key, found = share_key(residuals), []
    for key.update in updates:
        x = x.detach().requires_grad_()
        stream = module.open_stream("add", x, training=True, checkpointing=False)
        for residual, write in zip(residuals, writes, strict=True):
            stream.write(residual, lambda read, write=write: write * read.sin())
        end = stream.close()
        gradients = torch.autograd.grad(end.sin().sum(), (x, *residuals.parameters()))
        found.append([type(stream).__name__, end.detach(), *gradients])
    return found
