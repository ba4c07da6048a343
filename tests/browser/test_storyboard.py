"""The animated flow of attention ends with the numbers of `inspect`, whatever the mechanism."""

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import expect

from benchmarks.pages import start_studio

TEXT = "The old judge sees the small cat."
FEW = "training.max_updates=2"
OF_ENCODER = {
    "scaled dot product": "scaled_dot_product",
    "cosine": "cosine",
    "linear": "linear",
    "window": "window, window: 2",
    "lsh": "lsh, num_buckets: 4, num_rounds: 2, reach: 4",
    "sparse": "sparse, window: 1, stride: 2, num_strides: 2, num_global: 1",
}
RECURRENT = "model={kind: recurrent, embedding_size: 16, hidden_size: 16, decoder: {kind: bahdanau}}"


@pytest.fixture(scope="module")
def runs(trained):
    """A run for each mechanism, which need not have learned anything."""
    of_encoder = {
        name: trained(f"model.encoder.self_attention={{kind: {kind}}}", FEW) for name, kind in OF_ENCODER.items()
    }
    return {**of_encoder, "additive": trained(RECURRENT, FEW)}


@pytest.fixture(scope="module")
def address(runs) -> Iterator[str]:
    program, at = start_studio(*(one.folder for one in runs.values()))
    yield at
    program.send_signal(signal.SIGINT)
    assert "Traceback" not in program.communicate(timeout=60)[1]


@pytest.mark.parametrize("mechanism", [*OF_ENCODER, "additive"])
def test_the_flow_ends_with_the_numbers_of_inspect(visit, runs, mechanism):
    one, query = runs[mechanism], 2
    target = one.translate([TEXT])[0].text
    found = one.inspect(TEXT, target)
    place = next(place for places in found.layers.values() for place in places)
    heads = found.records.whole(f"{place}.weights").shape[1]
    opened = visit("/steps", run=one.folder.as_posix(), text=TEXT, attention=place, query=query, head=heads - 1)
    page = opened.page
    page.get_by_role("button", name="Pause").click()
    slider = page.get_by_role("slider", name="Time")
    slider.press("End")
    written = page.locator(".flow-out rect").evaluate_all("all => all.map((one) => Number(one.dataset.value))")
    mixed = found.records.whole(f"{place}.mixed")[0, heads - 1, query].numpy()
    np.testing.assert_allclose(written, mixed, atol=1e-5)
    shares = page.locator(".of-share svg")
    drawn = shares.evaluate_all("all => all.map((one) => [...one.children].map((part) => Number(part.dataset.value)))")
    np.testing.assert_allclose(np.sum(drawn, axis=0), mixed, atol=1e-5)
    weights = found.records.whole(f"{place}.weights")[0, heads - 1, query].numpy()
    percents = [float(text.removesuffix("%")) for text in page.locator(".flow-weight .number").all_inner_texts()]
    np.testing.assert_allclose(percents, 100 * weights, atol=0.06)
    slider.press("Home")
    assert page.locator(".flow-weight .number").all_inner_texts() == [""] * len(percents)
    opened.screenshot(f"studio-flow-{mechanism.replace(' ', '-')}")
    expect(page.locator(".stage-says")).not_to_be_empty()
