"""Transcriptions of speech by jiwer: the word error rate.

Morris et al. 2004, "From WER and RIL to MER and WIL: improved evaluation measures for connected speech recognition",
https://doi.org/10.21437/Interspeech.2004-668.
"""

from collections.abc import Sequence


def word_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the words that are replaced, left out or added, as a share of the words of all references.

    0 for equal texts; more than 1 where many words are added. There must be a hypothesis for each reference.
    """
    import jiwer  # a translator does not wait for it

    return float(jiwer.wer(list(references), list(hypotheses)))
