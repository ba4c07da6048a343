"""`generate` of transformers with Marian's model and the weights of a run.

Arguments: the run, the sentences, and the precision: float32, bfloat16 (weights too) or autocast (float32 weights,
bfloat16 products). Exits with an error before the first request if this version cannot translate in that precision.
"""

import sys
from importlib.metadata import version
from typing import Any

import torch
from decoding_loop import answer_requests, folder, most_tokens, sentences, shape
from devices import DEVICE
from marian import EOS, PAD, build
from marian_names import in_marians_names
from safetensors.torch import load_file
from serve import Driver
from transformers import MarianMTModel
from transformers_attention import attend

LEFT_TO_MARIAN = {"final_logits_bias", "model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}
"""Parameters of Marian's model that a run has no weights for: a bias of zeros, and sinusoids."""


def load(precision: str) -> MarianMTModel:
    """Return the model in evaluation mode, with weights in bfloat16 if that is the precision."""
    model = build(shape())
    ours = load_file(folder() / "model.safetensors")
    found = model.load_state_dict(in_marians_names(ours, shape()["num_layers"]), strict=False)
    missing = set(found.missing_keys) - LEFT_TO_MARIAN
    if missing or found.unexpected_keys:
        raise SystemExit(f"weights without a place: {found.unexpected_keys}, places without weights: {missing}")
    model = model.eval().to(DEVICE)
    return model.bfloat16() if precision == "bfloat16" else model


def main() -> None:
    driver = Driver()
    precision = sys.argv[3]
    model = load(precision)

    most = most_tokens()

    def translate(sources: list[list[int]], request: dict[str, Any]) -> list[list[int]]:
        rows = [torch.tensor(ids) for ids in sources]
        source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to(DEVICE)
        autocast = torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "autocast")
        with torch.inference_mode(), attend(model, request["attention"]), autocast:
            written = model.generate(
                input_ids=source,
                attention_mask=(source != PAD).long(),
                num_beams=request["beam_size"],
                early_stopping=request.get("stopping") == "early",
                cache_implementation=None if request["cache"] == "dynamic" else request["cache"],
                do_sample=False,
                length_penalty=1.0,
                max_new_tokens=most,
            )
        return [until_end(row[1:]) for row in written.tolist()]

    # Fails here, and not in the middle of a measurement.
    translate(sentences()[:2], {"beam_size": 2, "cache": "dynamic", "attention": "sdpa"})
    driver.answer(
        versions={"transformers": version("transformers"), "torch": str(torch.__version__)},
        threads=torch.get_num_threads(),
    )
    answer_requests(driver, translate)


def until_end(ids: list[int]) -> list[int]:
    """Return the tokens before EOS, or all but padding if there is none."""
    return ids[: ids.index(EOS)] if EOS in ids else [token for token in ids if token != PAD]


if __name__ == "__main__":
    main()
