"""What a translator attends to in sentence pairs, teacher-forced: sentence by sentence, without padding.

Shape legend: L layers, H heads, Q queries, K keys, T target tokens, S source tokens, V words of a sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from regardant.data.batching import pad
from regardant.data.treebank import ParsedSentence
from regardant.data.vocabulary import PAD
from regardant.evaluation.alignment import merge_to_words
from regardant.inspection import Attended, attention_kinds, capture
from regardant.tasks.measures import is_causal, says_little
from regardant.tasks.translation.alignment import BATCH, words_of_tokens
from regardant.tasks.translation.translator import Translator


def attended(translator: Translator, sources: Sequence[str], targets: Sequence[str], kind: str) -> Iterator[Attended]:
    """Each pair under all attentions of a kind, as `attention_kinds` names it."""
    attentions = attention_kinds(translator.model)[kind]
    for start in range(0, len(sources), BATCH):
        rows = slice(start, start + BATCH)
        batch = translator.pairs(sources[rows], targets[rows], first_line=start + 1)
        with torch.inference_mode(), capture(translator.model, [f"{name}.weights" for name in attentions]) as records:
            translator.model.scores(batch.source, batch.target[:, :-1])
        layers = torch.stack([records.whole(f"{name}.weights") for name in attentions], 1)  # [B, L, H, Q, K]
        read, taken_in, written = batch.source.cpu(), batch.target[:, :-1].cpu(), batch.target[:, 1:].cpu()
        for weights, source, target, said in zip(layers, read, taken_in, written, strict=True):
            queries, keys = _sides(kind, int((source != PAD).sum()), int((said != PAD).sum()))
            tokens, tokenizer = source, translator.tokenizers.source
            if is_causal(kind):
                tokens, tokenizer = target, translator.tokenizers.target
            idle = says_little(tokens[:keys].tolist(), tokenizer.tokens(tokens[:keys].tolist()))
            yield Attended(weights[:, :, :queries, :keys], torch.tensor(idle))


def between_words(
    translator: Translator, sentences: Iterable[ParsedSentence]
) -> Iterator[tuple[ParsedSentence, Tensor]]:
    """The encoder's self-attention [L, H, V, V] between the words of parsed sentences; what is longer than the model
    is left out."""
    tokenizer, model = translator.tokenizers.source, translator.model
    places = [f"{name}.weights" for name in attention_kinds(model)["encoder.self_attention"]]
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


def _sides(kind: str, source: int, target: int) -> tuple[int, int]:
    """How many queries and keys a sentence has."""
    if kind.startswith("encoder"):
        return source, source
    return target, target if is_causal(kind) else source
