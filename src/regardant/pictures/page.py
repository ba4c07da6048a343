"""Interactive attention page as one HTML file: no network, no library, no other files.

Weights are stored as 8-bit fractions of the largest weight of their row, deflated layer by layer, and the page decodes
a layer when it is first shown: six layers of eight heads, three kinds and sixty tokens are well under a megabyte. User
text is data, never markup: JSON with "<" escaped, which the script inserts as text nodes. A content security policy
lets the page run its own script by its hash, and load nothing.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.markup import asset, digest, escaped, summary_list
from regardant.pictures.picture import AttentionPicture, Layout

SCRIPTS = ("weights.js", "drawing.js", "save.js", "view.js", "page.js")
"""Scripts in the order of their imports. Inlined, they are one module."""


def attention_page(
    sentences: Sequence[Sequence[AttentionPicture]],
    *,
    title: str,
    summary: Sequence[tuple[str, str]] = (),
    in_words: bool = True,
) -> str:
    """Return the whole page. Each sentence has a picture for each kind of attention; the first with a `chosen` head is
    shown first, otherwise the last. Raises ValueError for a sentence without a picture, and for no sentence.

    Args:
        summary: (label, value) pairs under the title, such as ("BLEU", "41.3").
        in_words: open with words, if the elements are pieces of words; otherwise with the pieces.
    """
    if not sentences or not all(sentences):
        raise ValueError("a page without a picture; give each sentence at least one AttentionPicture")
    script = "".join(_without_imports(asset(name)) for name in SCRIPTS)
    style = "".join(map(asset, ("colours.css", "look.css", "page.css")))
    layers = [
        f'<script type="application/octet-stream" id="weights-{s}-{k}-{number}">{packed(layer)}</script>'
        for s, pictures in enumerate(sentences)
        for k, picture in enumerate(pictures)
        for number, layer in enumerate(picture.weights)
    ]
    return Template(asset("page.html")).substitute(
        title=escaped(title),
        summary=summary_list(summary),
        style=style,
        style_hash=digest(style),
        data=_json([{**record(pictures), "unit": "Words" if in_words else "Pieces"} for pictures in sentences]),
        weights="\n".join(layers),
        script=script,
        script_hash=digest(script),
    )


def record(pictures: Sequence[AttentionPicture]) -> dict[str, object]:
    """Return the data of an item that `view.js` reads, without the weights: `packed` encodes each layer of those."""
    first = next((k for k, picture in enumerate(pictures) if picture.chosen is not None), len(pictures) - 1)
    chosen = pictures[first].chosen or (len(pictures[first].weights) - 1, -1)
    layouts = [one for picture in pictures for one in (picture.source_layout, picture.target_layout) if one is not None]
    layouts = [one for number, one in enumerate(layouts) if layouts.index(one) == number]
    return {
        "title": pictures[0].title,
        "note": " ".join(dict.fromkeys(picture.note for picture in pictures if picture.note)),
        "layouts": [
            {
                "rows": one.rows,
                "columns": one.columns,
                "picture": one.picture,
                "aspect": one.aspect,
                "places": [list(place) for place in one.places],
                "edges": [list(edge) for edge in one.edges],
            }
            for one in layouts
        ],
        "kinds": [_kind(picture, layouts) for picture in pictures],
        "chosen": [first, *chosen],
    }


def _kind(picture: AttentionPicture, layouts: Sequence[Layout]) -> dict[str, object]:
    num_layers, num_heads = picture.weights.shape[:2]
    return {
        "kind": picture.kind,
        "source": list(picture.source),
        "target": list(picture.target),
        "sourceUnits": [list(unit) for unit in picture.source_units],
        "targetUnits": [list(unit) for unit in picture.target_units],
        "sourceLayout": None if picture.source_layout is None else layouts.index(picture.source_layout),
        "targetLayout": None if picture.target_layout is None else layouts.index(picture.target_layout),
        "layers": num_layers,
        "heads": num_heads,
        "gold": sorted([int(source), int(target)] for source, target in picture.gold),
    }


def packed(layer: NDArray[np.floating[Any]]) -> str:
    """Return weights [H, T, S] as `weights.js` inflates them: the largest weight of each row [H, T] in float32, then a
    byte for each weight, 255 for the largest of its row; deflated, in base64.

    As fractions of 1, the weights of an even row over hundreds of keys would all be 0 or 1 of 255.
    """
    weights = layer.clip(0, 1).astype(np.float64)
    largest = weights.max(2, keepdims=True).astype("<f4")
    quantised = np.rint(255 * weights / np.where(largest, largest, 1)).astype(np.uint8)
    return b64encode(zlib.compress(largest.tobytes() + quantised.tobytes())).decode("ascii")


def _json(value: object) -> str:
    """Return JSON that cannot close the script element around it."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _without_imports(module: str) -> str:
    return "".join(line for line in module.splitlines(keepends=True) if not line.startswith("import "))
