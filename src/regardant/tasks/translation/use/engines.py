"""What searches for a run's translations: torch, or an engine that its model is exported to.

RUN/engines/NAME    an export, made when it is first asked for and again when the weights are others
"""

from pathlib import Path

import torch

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError
from regardant.generation.search import ModelSearcher
from regardant.layers.linear import Layouts
from regardant.tasks.translation.use.translator import Translator

KNOWN = ("torch", "torch-bfloat16", "ctranslate2")


class Engines:
    """A run's translator by the engine that searches for it."""

    def __init__(self, translator: Translator, folder: Path) -> None:
        self.folder = folder
        self.ready = {"torch": translator}

    def on(self, name: str) -> Translator:
        """On `torch`, `torch-bfloat16` (products in bfloat16), `ctranslate2` (int8 weights) or `ctranslate2-float32`
        and the like.

        Raises ConfigError for an engine that there is not or that is not installed, RunError for a model that it
        cannot compute.
        """
        if name not in self.ready:
            engine, _, quantization = name.partition("-")
            if name == "torch-bfloat16":
                self.ready[name] = self._in_bfloat16()
            elif engine == "ctranslate2":
                self.ready[name] = self._on_ctranslate2(quantization or "int8")
            else:
                near = did_you_mean(name, KNOWN) or f": take {', '.join(KNOWN)} or ctranslate2-float32"
                raise ConfigError(f"there is no engine {name}{near}")
        return self.ready[name]

    def export(self, to: str, folder: Path, quantization: str) -> None:
        """Write the model to a folder of its own, in the format `to`."""
        if to != "ctranslate2":
            raise ConfigError(f"there is no export to {to}: take ctranslate2 or hf")
        from regardant.interop.ctranslate2.export import export  # an extra

        translator = self.ready["torch"]
        export(translator.model, translator.tokenizers, folder, quantization)

    def _in_bfloat16(self) -> Translator:
        native = self.ready["torch"]
        searcher = ModelSearcher(native.model, native.codec, native.device, Layouts(torch.bfloat16))
        return Translator(native.model, native.tokenizers, native.device, searcher)

    def _on_ctranslate2(self, quantization: str) -> Translator:
        from regardant.interop.ctranslate2.export import exported  # an extra
        from regardant.interop.ctranslate2.search import CTranslate2Searcher
        from regardant.interop.ctranslate2.threads import choose_threads

        native = self.ready["torch"]
        tokenizers, device = native.tokenizers, native.device
        folder = self.folder / f"ctranslate2-{quantization}"
        exported(native.model, tokenizers, folder, quantization)
        cores = 1 if device.type == "cuda" else torch.get_num_threads()
        threads = choose_threads(folder, cores, tokenizers.source.pieces)
        return Translator(
            native.model, tokenizers, device, CTranslate2Searcher(folder, tokenizers, threads, device.type)
        )
