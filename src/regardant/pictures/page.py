"""One HTML file to look at attention with: no network, no library, nothing beside it.

Weights travel as 8-bit fractions, so a sentence pair of 12 x 12 words costs about 200 bytes a head. What
comes from the text is data, never markup: JSON with "<" escaped, which the script writes as text nodes. A
content security policy lets the page run its own script by its hash, and load nothing.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from string import Template

import numpy as np

from regardant.pictures.markup import asset, digest, escaped, summary_list
from regardant.pictures.picture import AttentionPicture

SCRIPTS = ("weights.js", "drawing.js", "view.js", "page.js")
"""In the order of their imports; inlined, they are one module."""


def attention_page(pictures: Sequence[AttentionPicture], *, title: str, summary: Sequence[tuple[str, str]] = ()) -> str:
    """The whole page. summary: (label, value) numbers under the title, such as ("BLEU", "41.3")."""
    if not pictures:
        raise ValueError("a page without a picture; give at least one AttentionPicture")
    script = "".join(_without_imports(asset(name)) for name in SCRIPTS)
    style = "".join(map(asset, ("colours.css", "look.css", "page.css")))
    return Template(asset("page.html")).substitute(
        title=escaped(title),
        summary=summary_list(summary),
        style=style,
        style_hash=digest(style),
        data=_json([_record(picture) for picture in pictures]),
        script=script,
        script_hash=digest(script),
    )


def _record(picture: AttentionPicture) -> dict[str, object]:
    num_layers, num_heads = picture.weights.shape[:2]
    quantised = np.rint(picture.weights.clip(0, 1) * 255).astype(np.uint8)
    return {
        "title": picture.title,
        "note": picture.note,
        "source": list(picture.source),
        "target": list(picture.target),
        "layers": num_layers,
        "heads": num_heads,
        "weights": b64encode(quantised.tobytes()).decode("ascii"),
        "gold": sorted([int(source), int(target)] for source, target in picture.gold),
        "chosen": list(picture.chosen or (num_layers - 1, -1)),
    }


def _json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _without_imports(module: str) -> str:
    return "".join(line for line in module.splitlines(keepends=True) if not line.startswith("import "))
