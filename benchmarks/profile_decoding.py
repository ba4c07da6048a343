"""Time of the parts of Regardant's own search, on the model and the sentences of `make bench-decoding`.

    make bench-profile                           profiles training and decoding

torch.profiler over a search on one core, of 320 sentences in batches of 32 and of 40 sentences alone. Written to
benchmarks/results/decoding_profile.json.
"""

from typing import Any

from regardant.data.tokenizers import Tokenizers

from . import decoding
from .bars import rounded
from .decoding import ALONE, BEAM, GREEDY, Case, batches, request
from .records import Measurement, arguments, precisions
from .workers import Peer, progress

CASES = {BEAM: 10, GREEDY: 10, ALONE: 40}
"""Numbers of batches, evenly spaced among those of all lengths, by case."""


def sample(lengths: list[int], case: Case, count: int) -> dict[str, Any]:
    """Return the request for `count` of the batches of a case."""
    planned = batches(lengths, case)
    return request(case, [planned[number * len(planned) // count] for number in range(count)], at_once=True)


def shares(profiled: dict[str, Any]) -> dict[str, Any]:
    """Return a peer's profile of a case as shares of the time and numbers of a sentence."""
    count, total = profiled["sentences"], profiled["profiled_seconds"]
    return {
        "milliseconds_a_sentence": rounded(1000 * profiled["seconds"] / count),
        "milliseconds_a_sentence_profiled": rounded(1000 * total / count),
        "shares": {part: rounded(seconds / total) for part, seconds in profiled["parts"].items()},
        "slowest_operators": [
            {"operator": name, "calls_a_sentence": rounded(calls / count), "share": rounded(seconds / total)}
            for name, calls, seconds in profiled["slowest"]
        ],
    }


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    decoding.train()
    sentences, lengths = decoding.write_sentences(Tokenizers.load(decoding.RUN / "tokenizer.json"))
    profiles: dict[str, dict[str, Any]] = {}
    for precision in precisions():
        given = [str(decoding.RUN), str(sentences), precision]
        with Peer("regardant_decoding_profile", given, folder=decoding.LOGS) as peer:
            progress(precision)
            profiles[precision] = {
                case.name: shares(peer.ask(**sample(lengths, case, count))) for case, count in CASES.items()
            }
    measurement.keep("decoding_profile", {"command": "make bench-profile", "profiles": profiles})
    for precision, cases in profiles.items():
        for case, profile in cases.items():
            print(f"{precision}, {case}: {profile['milliseconds_a_sentence']} ms a sentence")
            for part, share in profile["shares"].items():
                print(f"  {share:6.1%}  {part}")


if __name__ == "__main__":
    main()
