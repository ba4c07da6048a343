"""Look at a model while it runs, without changing what runs.

Hooks keep copies of what passes the named places; whatever else one wants to know is computed from them beside the
fast path, when it is read (see `calls`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from regardant.inspection.places import Keep, Site, choose
from regardant.inspection.records import Records
from regardant.layers.observed import observing


@contextmanager
def capture(model: nn.Module, places: str | Sequence[str] = "*", *, gradients: bool = False) -> Iterator[Records]:
    """Record what passes the places whose names match, as in `"*.weights"` or `["encoder.layers.0.*", "head.*"]`.

    gradients: keep the tensors themselves, and with them autograd's graph, for `Records.gradients`.

    Raises ValueError for a name that no place has.
    """
    records, keep = Records(), _itself if gradients else _copy
    with ExitStack() as listening:
        for site, quantities in choose(model, places):
            kept = site.kept(quantities, gradients=gradients)
            hook = _listener(records, site, quantities, kept, keep)
            listening.callback(site.module.register_forward_hook(hook).remove)
            listening.enter_context(observing(site.module))
        yield records


def _listener(
    records: Records, site: Site, quantities: tuple[str, ...], kept: frozenset[str], keep: Keep
) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
    def listen(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        records.add(site.name, quantities, site.call(inputs, output, kept, keep))

    return listen


def _copy(x: Tensor) -> Tensor:
    # Decoding overwrites its buffers; and a view would keep alive what it is a part of.
    return x.detach().clone()


def _itself(x: Tensor) -> Tensor:
    return x
