"""Smoke test of speed: training and greedy search compared with torch.nn.Transformer, in under two minutes.

    make bench-smoke

Random sentences of the lengths of Multi30k, so no data is needed. Limits are low, since the machine may be busy.
Training is compared in the precision that Regardant chooses, greedy search in float32. Writes no result; exits with
code 1 if a bar is missed.
"""

import time
from contextlib import ExitStack
from random import Random

from .bars import bar, conclude, lines
from .records import ROOT
from .shared_batches import SHAPE, bucketed, spread, write
from .training import ATTENTIONS
from .workers import Peer, Row, fastest, interleave, one_torch, settings

FOLDER = ROOT / "runs" / "bench-smoke"
PAIRS, BATCH_TOKENS, BATCHES, PASSES = 1500, 2048, 3, 3
FIRST_WORD = 5

TRAINING_BOUND, DECODING_BOUND = 1.15, 2.0
"""Least ratio of Regardant's speed to that of torch.nn.Transformer."""


def random_batches() -> list[tuple[list[list[int]], list[list[int]]]]:
    """Return blocks of random ids, padded with 0. Sources end with EOS (2), targets also begin with SOS (1)."""
    random = Random(1)
    pairs = []
    for _ in range(PAIRS):
        source = random.randint(7, 25)
        pairs.append((source, max(5, source + random.randint(-3, 3))))  # tokens with EOS
    chosen = spread(bucketed([s for s, _ in pairs], [t for _, t in pairs], BATCH_TOKENS), BATCHES)

    def block(lengths: list[int], first: list[int]) -> list[list[int]]:
        rows = [[*first, *random.choices(range(FIRST_WORD, SHAPE["vocab_size"]), k=n - 1), 2] for n in lengths]
        longest = max(map(len, rows))
        return [row + [0] * (longest - len(row)) for row in rows]

    return [(block([pairs[i][0] for i in batch], []), block([pairs[i][1] for i in batch], [1])) for batch in chosen]


def main() -> None:
    begun = time.perf_counter()
    path = FOLDER / "batches.json"
    write(path, SHAPE, random_batches())
    with ExitStack() as stack:

        def peer(program: str, *arguments: str) -> Peer:
            return stack.enter_context(Peer(program, [str(path), *arguments], folder=FOLDER))

        ours, theirs, searches = peer("regardant_training", "auto"), peer("torch_training"), peer("greedy_decoding")
        one_torch([ours, theirs, searches])
        asked, precision = {"updates": BATCHES}, ours.about["decided"]["precision"]
        candidates = settings(f"nn.Transformer, {precision}", theirs, asked | {"precision": precision}, ATTENTIONS)
        training = [Row(f"regardant, {precision}", ours, asked), fastest(candidates, {}, {})[0]]
        decoding = [
            Row("search", searches, {"engine": "regardant"}),
            Row("nn.Transformer's", searches, {"engine": "torch"}),
        ]
        for row in (*training, *decoding):
            row.read()
        interleave([*training, *decoding], PASSES)
    mine, theirs_alike = (row.tokens_per_second for row in training)
    search, prefixes = (row.tokens_per_second for row in decoding)
    times = mine / theirs_alike
    bars = [
        bar(f"training in {precision}, times torch.nn.Transformer", times, TRAINING_BOUND, at_least=True),
        bar("greedy search in float32, times torch.nn.Transformer", search / prefixes, DECODING_BOUND, at_least=True),
    ]
    print(*lines(bars), sep="\n")
    print(f"{time.perf_counter() - begun:.0f} seconds")
    conclude(bars)


if __name__ == "__main__":
    main()
