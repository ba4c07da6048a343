"""One query of one head, from its input vector to the mixed values, with the model's own numbers.

Project, score, scale, softmax, mix: Vaswani et al. 2017, section 3.2.1. A mechanism with other scores shows them in
place of scaled products; a mechanism without scores shows its weights only.

Shape legend: M d_model, D size of a head's queries and keys, E of its values, K keys.
"""

from itertools import chain
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.attention import Attention
from regardant.attention.interface import expand_heads
from regardant.attention.masks import EVERYTHING
from regardant.errors import DataError, RunError
from regardant.inspection import Records
from regardant.layers.multi_head import CrossAttention, SelfAttention
from regardant.studio.numbers import plain
from regardant.studio.open_runs import Asked
from regardant.tasks.base import Trained
from regardant.tasks.inspection import Inspection
from regardant.tasks.measure_tables import kind_title

MOST_WEIGHTS = 2500
"""Largest number of weights of a head for which all queries are sent."""

DIGITS = 4
"""Significant digits of the numbers of all queries."""


class AskedQuery(Asked):
    """Request for one query of a head."""

    attention: str | None = None
    """Name of the attention's place. None: the last one, a cross-attention if the model has any."""
    head: int = Field(0, ge=0)
    query: int = Field(0, ge=0)
    """Number of the row."""
    component: int = Field(0, ge=0)
    """Component of the query vector whose products are listed."""


def five_steps(trained: Trained, asked: AskedQuery) -> dict[str, Any]:
    """Return all numbers of a query, and the places, heads and queries to choose from.

    Raises RunError for a model without the attention, DataError for a head or a query that it does not have.
    """
    found = trained.inspect(asked.text, **asked.options)
    if not found.layers:
        raise RunError(f"{asked.run} has no attention, and so no steps to show: see Through the layers, or Shapes")
    places = [place for layers in found.layers.values() for place in layers]
    place = asked.attention or places[-1]
    if place not in places:
        raise RunError(f"this model has no attention {place!r}: choose one of {', '.join(places)}")
    kind = next(kind for kind, layers in found.layers.items() if place in layers)
    queries, keys = found.rows(kind).labels, found.columns(kind).labels
    _require("head", asked.head, _num_heads(found.records, place))
    _require("query", asked.query, len(queries))
    return {
        "item": found.item,
        "answer": found.answer,
        "places": [_choice(found, kind, place) for kind, layers in found.layers.items() for place in layers],
        "place": place,
        "head": asked.head,
        "query": asked.query,
        "queries": queries,
        "keys": keys,
        "mechanism": type(trained.model.get_submodule(_mechanism(trained.model, place))).__name__,
        "projected": _projection(trained, found, place, asked),
        "whole": _whole_head(found.records, place, asked.head),
        **_numbers(trained.model, found.records, place, asked),
    }


def _numbers(model: nn.Module, records: Records, place: str, asked: AskedQuery) -> dict[str, Any]:
    mechanism = model.get_submodule(_mechanism(model, place))
    assert isinstance(mechanism, Attention)
    whole = records.whole(f"{place}.query")
    k, v = records[f"{place}.key"][-1], records[f"{place}.value"][-1]  # a recurrent decoder attends to the same keys
    group = asked.head * k.shape[1] // whole.shape[1]
    q, keys, values = whole[0, asked.head, asked.query], k[0, group], v[0, group]
    weights = records.whole(f"{place}.weights")[0, asked.head, asked.query]
    scored = f"{place}.scores" in records
    scores = records.whole(f"{place}.scores")[0, asked.head, asked.query] if scored else None
    products = keys @ q if scored and _is_scaled_product(mechanism, whole[:, :, asked.query, None], k) else None
    return {
        "lengths": plain(keys.norm(dim=-1)) if products is not None else None,
        "length": None if products is None else float(q.norm()),
        "cosines": None if products is None else plain(torch.cosine_similarity(keys, q[None], dim=-1)),
        "asymmetry": _asymmetry(mechanism, whole, k, asked.head) if scored and _is_self(model, place) else None,
        "q": plain(q),
        "k": plain(keys),
        "v": plain(values),
        "products": plain(products),
        "scale": None if products is None else mechanism.scale,
        "scaled": plain(None if products is None else products * mechanism.scale),
        "scores": plain(scores),
        "softmax": scores is not None and bool(torch.allclose(scores.softmax(-1), weights, atol=1e-5)),
        "weights": plain(weights),
        "mixed": plain(records.whole(f"{place}.mixed")[0, asked.head, asked.query]),
    }


def _is_scaled_product(mechanism: Attention, q: Tensor, k: Tensor) -> bool:
    """Return whether the scores are q . k times the scale."""
    k = expand_heads(k, q.shape[1])
    if q.shape[-1] != k.shape[-1]:
        return False
    return bool(torch.allclose(_scores_of_all(mechanism, q, k), q @ k.mT * mechanism.scale, atol=1e-4))


def _scores_of_all(mechanism: Attention, q: Tensor, k: Tensor) -> Tensor:
    """Return the scores of all pairs of recorded vectors, before masks. The mechanism may be on an accelerator."""
    device = next((one.device for one in chain(mechanism.parameters(), mechanism.buffers())), q.device)
    with torch.inference_mode():
        return mechanism.compute_scores(q.to(device), k.to(device), EVERYTHING).cpu()


def _is_self(model: nn.Module, place: str) -> bool:
    return isinstance(model.get_submodule(place), SelfAttention)


def _asymmetry(mechanism: Attention, q: Tensor, k: Tensor, head: int) -> float:
    """Return the norm of the antisymmetric part of a head's scores, before masks, relative to that of the scores.

    0: scores[i, j] = scores[j, i], as with a projection that queries and keys share.
    """
    scores = _scores_of_all(mechanism, q, expand_heads(k, q.shape[1]))[0, head].double()
    return float((scores - scores.mT).norm() / (2 * scores.norm()).clamp_min(1e-12))


def _num_heads(records: Records, place: str) -> int:
    return records[f"{place}.query"][0].shape[1]


def _projection(trained: Trained, found: Inspection, place: str, asked: AskedQuery) -> dict[str, Any] | None:
    """Return x W + b of the query: its input vector, and the products of one component. None: no linear projection.

    Rotary positions act afterwards. Without biases, b is zero.
    """
    layer = trained.model.get_submodule(place)
    if isinstance(layer, CrossAttention):
        linear: nn.Module = layer.query
    elif isinstance(layer, SelfAttention) and "query" in layer.parts:
        linear = layer.query_key_value
    else:
        return None
    assert isinstance(linear, nn.Linear)
    x = _input_of(linear, trained, found)[asked.query]
    size = layer.shape.key_size
    rows = slice(asked.head * size, (asked.head + 1) * size)  # queries come first in the joint matrix
    weight = linear.weight.detach()[rows].float().cpu()
    bias = weight.new_zeros(size) if linear.bias is None else linear.bias.detach()[rows].float().cpu()
    component = min(asked.component, size - 1)
    turned = isinstance(layer, SelfAttention) and layer.positions.acts_on == "query_key"
    return {
        "x": plain(x),
        "weight": plain(weight[component]),
        "bias": plain(bias[component]),
        "component": component,
        "q": plain(weight @ x + bias),
        "turned": turned,
    }


def _input_of(linear: nn.Linear, trained: Trained, found: Inspection) -> Tensor:
    """Return the input [T, M] of a projection."""
    seen: list[Tensor] = []

    def listen(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        seen.append(inputs[0][0].float().cpu())

    handle = linear.register_forward_hook(listen)
    try:
        with torch.inference_mode():
            trained.model.scores(**found.batch)
    finally:
        handle.remove()
    return torch.cat(seen)


def _choice(found: Inspection, kind: str, place: str) -> dict[str, Any]:
    """Return a place to choose, with a display name that counts layers from 1."""
    name = f"{kind_title(kind)}, layer {found.layers[kind].index(place) + 1}"
    return {"place": place, "name": name, "heads": _num_heads(found.records, place), "queries": found.rows(kind).labels}


def _whole_head(records: Records, place: str, head: int) -> dict[str, Any] | None:
    """Return scores, weights and outputs of all queries of a head, to four digits. None above MOST_WEIGHTS."""
    weights = records.whole(f"{place}.weights")[0, head]
    if weights.numel() > MOST_WEIGHTS:
        return None
    scores = records.whole(f"{place}.scores")[0, head] if f"{place}.scores" in records else None
    mixed = records.whole(f"{place}.mixed")[0, head]
    return {"scores": plain(scores, DIGITS), "weights": plain(weights, DIGITS), "mixed": plain(mixed, DIGITS)}


def _mechanism(model: nn.Module, place: str) -> str:
    """Return the name of the mechanism at a place, which may be named after the layer that holds it."""
    return place if isinstance(model.get_submodule(place), Attention) else f"{place}.mechanism"


def _require(what: str, number: int, count: int) -> None:
    if number >= count:
        raise DataError(f"there is no {what} {number}: choose 0 to {count - 1}")
