"""Triton's compiler, for a process of its own: it compiles for an accelerator that is not there."""

import sys
from importlib import import_module

from .interpreted import FOLDER


def begin():
    """Once in a process, before anything else."""
    sys.path.insert(0, str(FOLDER))


def shared_bytes(*kernel):
    """Return the shared memory that a block of a compiled kernel takes."""
    return _compile(*kernel).metadata.shared


def assembly(*kernel):
    """Return the PTX of a compiled kernel."""
    return _compile(*kernel).asm["ptx"]


def _compile(module, name, types, constants, capability):
    """Return a kernel compiled for NVIDIA's accelerators of a capability.

    `types` are those of arguments that are no 32-bit integers.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(import_module(f"regardant.kernels.{module}"), name)
    constants = {one: value for one, value in constants.items() if one in kernel.arg_names}
    kinds = dict.fromkeys(kernel.arg_names, "i32") | types | dict.fromkeys(constants, "constexpr")
    kinds = {one: kind for one, kind in kinds.items() if one in kernel.arg_names}
    compiled = triton.compile(ASTSource(kernel, kinds, constants), target=GPUTarget("cuda", capability, 32))
    assert compiled.asm["cubin"]
    return compiled
