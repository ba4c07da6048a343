"""Requests that wait together, and items of one request: each has its own answer."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from .conftest import LIMITS, SENTENCE

OTHER = "A small cat sees the judge."
FORCED = "Le vieux juge voit le petit chat ."


def test_requests_with_other_options_share_no_batch(serving, client_of, trained):
    client = client_of(serving("demo", limits=replace(LIMITS, max_wait_ms=500)))
    asked = [{"beam_size": 3, "nbest": 3}, {"beam_size": 1, "nbest": 1}, {"beam_size": 3, "length_penalty": 0.0}]

    def post(options):
        return client.post("/v1/translate", json={"run": "demo", "texts": [SENTENCE], **options}).json()

    with ThreadPoolExecutor(len(asked)) as pool:
        found = [answer["translations"] for answer in pool.map(post, asked)]
    own = [trained().translate([SENTENCE], **options)[0] for options in asked]
    assert len({(round(one.score, 3), len(one.candidates)) for one in own}) == len(asked)
    for (one,), expected in zip(found, own, strict=True):
        assert (one["text"], len(one["candidates"])) == (expected.text, len(expected.candidates))
        assert one["score"] == pytest.approx(expected.score, abs=1e-4)


def test_scores_are_in_the_order_of_their_items(ask, trained, trained_on_text):
    items, targets = [SENTENCE, OTHER, SENTENCE], [FORCED, FORCED, "Un chat voit le juge ."]
    own = trained().score(items, targets)
    assert len({round(one, 2) for one in own}) == 3
    found = ask("/v1/score", run="demo", items=items, targets=targets)["scores"]
    assert [one["log_probability"] for one in found] == pytest.approx(own, abs=1e-3)
    texts = ["the old cat", "a dog"]
    scores = [trained_on_text().score(text).as_dict() for text in texts]
    assert ask("/v1/score", run="text", items=texts)["scores"] == [pytest.approx(one) for one in scores]
