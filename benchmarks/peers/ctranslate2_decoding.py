"""CTranslate2 with the weights of a run, by its own specification of a Transformer.

Arguments: the run, the sentences, compute type, batches at once, threads of each.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec
from decoding_loop import answer_requests, folder, most_tokens, shape
from safetensors.numpy import load_file
from serve import Driver

SOS, EOS, UNK = 1, 2, 3

EMBEDDING = "source.table.weight"
"""Name in a run's weights of the matrix that source, target and output share."""

SELF = ("self_attention.query_key_value", "self_attention.output")
CROSS = ("cross_attention.query", "cross_attention.key_value", "cross_attention.output")
NETWORK = ("feed_forward.widen", "feed_forward.narrow")
"""Our names of the matrices of each sublayer, in CTranslate2's order. Both fuse the same projections."""


def specification(shape: dict[str, Any], weights: dict[str, np.ndarray]) -> TransformerSpec:
    """Return the specification of a post-norm model of ours."""
    layers = shape["num_layers"]
    spec = TransformerSpec.from_config(
        (layers, layers), shape["num_heads"], pre_norm=False, activation=common_spec.Activation.RELU
    )
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        stack.scale_embeddings = math.sqrt(shape["d_model"])
        stack.position_encodings.encodings = sinusoids(shape["max_length"], shape["d_model"])
        for number, layer in enumerate(stack.layer):
            of_layer = f"{name}.layers.{number}."
            for linears, names, norm, norm_name in sublayers(layer):
                norm.gamma, norm.beta = (weights[f"{of_layer}{norm_name}.{kind}"] for kind in ("weight", "bias"))
                for linear, linear_name in zip(linears, names, strict=True):
                    linear.weight = weights[f"{of_layer}{linear_name}.weight"]
                    linear.bias = weights[f"{of_layer}{linear_name}.bias"]
    for place in (spec.encoder.embeddings[0], spec.decoder.embeddings, spec.decoder.projection):
        place.weight = weights[EMBEDDING]
    words = [str(token) for token in range(shape["vocab_size"])]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = str(SOS)
    spec.config.eos_token, spec.config.unk_token = str(EOS), str(UNK)
    return spec


def sublayers(layer: Any) -> Iterator[tuple[list[Any], tuple[str, ...], Any, str]]:
    """Yield for each sublayer its matrices, our names of them, its norm and our name of the norm."""
    own, network = layer.self_attention, layer.ffn
    yield own.linear, SELF, own.layer_norm, "after_self_attention.norm"
    if hasattr(layer, "attention"):
        yield layer.attention.linear, CROSS, layer.attention.layer_norm, "after_cross_attention.norm"
    yield [network.linear_0, network.linear_1], NETWORK, network.layer_norm, "after_feed_forward.norm"


def sinusoids(length: int, d_model: int) -> np.ndarray:
    """Return the sinusoidal positions [length, d_model]: all sines, then all cosines."""
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)


@contextmanager
def converted() -> Iterator[str]:
    """Yield the model in CTranslate2's format."""
    spec = specification(shape(), load_file(folder() / "model.safetensors"))
    spec.validate()
    spec.optimize()
    with TemporaryDirectory(prefix="ctranslate2-") as output:
        spec.save(output)
        yield output


def main() -> None:
    driver = Driver()
    compute_type, at_once, threads = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    with converted() as model:
        translator = ctranslate2.Translator(
            model, device="cpu", compute_type=compute_type, inter_threads=at_once, intra_threads=threads
        )

    most = most_tokens()

    def translate(sources: list[list[int]], request: dict[str, Any]) -> list[list[int]]:
        """Translate one call's sentences, in several batches of `batch_size` at once if there are more."""
        found = translator.translate_batch(
            [[str(token) for token in ids] for ids in sources],
            beam_size=request["beam_size"],
            length_penalty=1.0,
            max_decoding_length=most,
            max_batch_size=request["batch_size"],
        )
        return [[int(token) for token in one.hypotheses[0]] for one in found]

    driver.answer(versions={"ctranslate2": ctranslate2.__version__}, threads=at_once * threads)
    answer_requests(driver, translate)


if __name__ == "__main__":
    main()
