"""Sentence pairs as a translator reads them by teacher forcing, and the attention between words of parsed sentences.

Shape legend: L layers, H heads, V words of a sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from regardant.data.batching import PairBatch, pad
from regardant.data.tokenizers import Tokenizers
from regardant.data.treebank import ParsedSentence
from regardant.data.vocabulary import PAD
from regardant.evaluation.alignment import merge_to_words
from regardant.inspection import attention_places, capture
from regardant.tasks.probe import Probe
from regardant.tasks.translation.look.alignment import BATCH, words_of_tokens
from regardant.tasks.translation.use.translator import Translator


def probes(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> Iterator[Probe]:
    """Yield pairs in batches, as the model takes them by teacher forcing."""
    for start in range(0, len(sources), BATCH):
        rows = slice(start, start + BATCH)
        yield probe_of(translator.tokenizers, translator.pairs(sources[rows], targets[rows], first_line=start + 1))


def read_inputs(batch: PairBatch) -> dict[str, Tensor]:
    """Return the inputs of a batch. Targets are read up to the token before EOS: every token read has a target."""
    return {"source": batch.source, "target": batch.inputs["target"].masked_fill(batch.targets == PAD, PAD)}


def probe_of(tokenizers: Tokenizers, batch: PairBatch) -> Probe:
    """Return the pairs of a batch with the names of their tokens."""
    inputs = read_inputs(batch)
    tokens = {"source": tokenizers.source, "target": tokenizers.target}
    labels = {name: [tokens[name].tokens(row[row != PAD].tolist()) for row in rows] for name, rows in inputs.items()}
    return Probe(inputs, batch.targets, labels)


def between_words(
    translator: Translator, sentences: Iterable[ParsedSentence]
) -> Iterator[tuple[ParsedSentence, Tensor]]:
    """The encoder's self-attention [L, H, V, V] between the words of parsed sentences; what is longer than the model
    is left out."""
    tokenizer, model = translator.tokenizers.source, translator.model
    places = [f"{name}.weights" for name in attention_places(model)["encoder.self_attention"]]
    encoded = ((sentence, tokenizer.encode(sentence.text)) for sentence in sentences)
    fitting = (both for both in encoded if len(both[1]) < translator.max_length)
    while several := list(islice(fitting, BATCH)):
        with torch.inference_mode(), capture(model, places) as records:
            model.encode(pad([ids for _, ids in several]).to(translator.device))
        layers = torch.stack([records[place][0] for place in places], 1).numpy()
        for (sentence, ids), weights in zip(several, layers, strict=True):
            words, size = words_of_tokens(tokenizer, sentence.text, sentence.spans), len(ids) + 1
            merged = [[merge_to_words(head[:size, :size], words, words) for head in layer] for layer in weights]
            found = torch.from_numpy(np.array(merged))
            missing = len(sentence.words) - found.shape[-1]  # the last words may have no token of their own
            yield sentence, torch.nn.functional.pad(found, (0, missing, 0, missing))
