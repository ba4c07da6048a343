"""A trained run with `--engine ctranslate2`, as in `regardant translate`: exported, with probed threads.

Arguments: the run, the sentences, the compute type.
"""

import sys
from typing import Any

import ctranslate2
import numpy as np
from decoding_loop import answer_requests, folder, most_tokens
from serve import Driver

import regardant
from regardant.generation.config import GenerationConfig
from regardant.tasks.translation.trained import TrainedTranslator


def main() -> None:
    driver = Driver()
    trained = regardant.load(folder()).trained
    assert isinstance(trained, TrainedTranslator)
    translator = trained.engines.on(f"ctranslate2-{sys.argv[3]}")

    most = most_tokens()

    def translate(sources: list[list[int]], request: dict[str, Any]) -> list[list[int]]:
        generation = GenerationConfig(
            beam_size=request["beam_size"], length_penalty=1.0, max_length_ratio=0, max_length_extra=most
        )
        without_eos = [np.array(source[:-1]) for source in sources]
        found = translator.searcher.search(without_eos, [[] for _ in sources], generation, translator.max_length - 1)
        return [best.tokens for best, *_ in found]

    driver.answer(versions={"ctranslate2": ctranslate2.__version__}, threads=1)
    answer_requests(driver, translate)


if __name__ == "__main__":
    main()
