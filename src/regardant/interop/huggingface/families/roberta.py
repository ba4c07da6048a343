"""RoBERTa (Liu et al. 2019, https://arxiv.org/abs/1907.11692): BERT with other names and positions from 2 on."""

from dataclasses import replace

from regardant.interop.huggingface.families import bert
from regardant.interop.huggingface.forms import POSITIONS_AND_TYPES, POSITIONS_FROM_2_AND_TYPES, WORDS
from regardant.interop.huggingface.layouts import CheckpointLayout, Computed, Entry, linear


def renamed(entry: Entry) -> Entry:
    """Return an entry of BERT with the names of RoBERTa."""
    return entry._replace(theirs=tuple(name.replace("bert.", "roberta.", 1) for name in entry.theirs))


INPUT = tuple(
    one._replace(form=POSITIONS_FROM_2_AND_TYPES) if one.form is POSITIONS_AND_TYPES else one
    for one in map(renamed, bert.INPUT)
)

REQUIRED = {**bert.REQUIRED, "pad_token_id": (1,)}


TRANSFORM = "head.transform.activation"
"""Path of the activation before the output projection, which is GELU, whatever hidden_act is."""

LENGTH = bert.LENGTH._replace(values=Computed(read=lambda rows: rows - 2, write=lambda length: length + 2))


def of(layout: CheckpointLayout, architecture: str, head: tuple[Entry, ...]) -> CheckpointLayout:
    """Return a layout of BERT as one of RoBERTa."""
    return replace(
        layout,
        model_type="roberta",
        architecture=architecture,
        fixed={**layout.fixed, **({TRANSFORM: "gelu"} if layout is bert.MASKED else {})},
        settings=tuple(
            LENGTH if one is bert.LENGTH else one._replace(ours=tuple(path for path in one.ours if path != TRANSFORM))
            for one in layout.settings
        ),
        weights=(*INPUT, *head),
        layers={path: tuple(map(renamed, entries)) for path, entries in layout.layers.items()},
        required={**layout.required, **REQUIRED},
        prefix="roberta.",
        ignored=("roberta.embeddings.*_ids", "roberta.pooler.*", "lm_head.decoder.*"),
    )


LAYOUTS = (
    of(
        bert.MASKED,
        "RobertaForMaskedLM",
        (
            *linear("head.transform.dense", "lm_head.dense"),
            *linear("head.transform.norm", "lm_head.layer_norm"),
            Entry(("head.bias",), ("lm_head.bias",), WORDS),
        ),
    ),
    of(
        bert.CLASSES,
        "RobertaForSequenceClassification",
        (*linear("head.transform.0", "classifier.dense"), *linear("head.output", "classifier.out_proj")),
    ),
    of(bert.VECTORS, "RobertaModel", ()),
)
