"""The lab in a browser: every number of the lectures read out of the page, and its arithmetic beside Python's."""

import re
import socket
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from threading import Thread
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import uvicorn
from playwright.sync_api import Browser, Page, expect

from regardant.attention.scaled_dot_product import ScaledDotProductConfig
from regardant.attention.top_k import TopKConfig
from regardant.checks.verify import CHECKS
from regardant.checks.verify.check import Figure, named
from regardant.checks.verify.mechanisms import ours, weights
from regardant.positions.alibi import Alibi
from regardant.positions.rotary import RotaryConfig
from regardant.positions.sinusoidal import sinusoids
from regardant.studio.app import make_app
from regardant.training import schedules

from .conftest import Opened

PATIENCE = 60_000
"""Milliseconds: samples take a second or two on a machine of one's own."""
CLAIMS = {check.claim.id: check.claim for check in CHECKS}
BENCHES = {
    "worked": ["N-01", "N-02", "N-03", "N-04", "N-05", "N-06", "N-09"],
    "retrieval": ["N-10", "N-11", "N-16", "N-18"],
    "shuffle": ["N-21"],
    "saturation": ["N-19", "N-20"],
    "positions": ["N-23", "N-24", "N-25", "N-26", "N-27"],
    "rates": ["N-39"],
    "costs": ["N-30", "N-31", "N-32", "N-33", "N-34", "N-35", "N-36", "N-37", "N-38", "N-40", "N-41", "N-52"],
    "examples": ["N-07", "N-08", "N-12", "N-13", "N-14", "N-15", "N-17"],
}
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app([]), log_level="error", lifespan="off"))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def lab(browser: Browser, address: str) -> Iterator[Callable[..., Opened]]:
    """Opens the lab with this state; afterwards it must have asked nobody else and complained of nothing."""
    opened: list[Opened] = []

    def open_(options: dict[str, object] | None = None, fragment: str | None = None, **state: object) -> Opened:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | (options or {}))
        context.set_default_timeout(PATIENCE)
        one = Opened(context.new_page(), f"{address}/lab#{urlencode(state) if fragment is None else fragment}")
        opened.append(one)
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.on("console", lambda said: said.type in ("error", "warning") and one.complaints.append(said.text))
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.goto(one.address)
        skip = one.page.get_by_role("button", name="Show without a guess")
        skip.or_(one.page.locator(".claims details")).first.wait_for()
        if skip.is_visible():
            skip.click()
        one.page.locator(".claims details").first.wait_for()
        return one

    yield open_
    for one in opened:
        assert [url for url in one.requests if not url.startswith((address, "data:", "blob:"))] == []
        assert one.complaints == []
        one.page.context.close()


def cells(page: Page, selector: str) -> list[list[str]]:
    """The rows of the body of a table, their heads first."""
    rows = page.locator(f"{selector} >> tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def fits(true: str, shown: str) -> bool:
    """By the rules of `regardant verify`."""
    plain = [[float(word) if NUMBER.fullmatch(word) else word for word in row.split()] for row in shown.split("\n")]
    return Figure("", [row.split() for row in true.split(";")], plain, 0.0).ok


@pytest.mark.parametrize("bench", BENCHES)
def test_every_number_of_the_lectures_is_the_true_one_to_its_digits(lab, bench):
    page = lab(bench=bench).page
    assert page.locator(".claims details").evaluate_all("all => all.map((one) => one.id)") == BENCHES[bench]
    for id in BENCHES[bench]:
        page.locator(f"#{id} summary").click()
        page.locator(f"#{id} table").wait_for()
        rows = {name: rest for name, *rest in cells(page, f"#{id}")}
        true = {name or "value": text for name, text in named(CLAIMS[id].true).items()}
        assert true.keys() <= rows.keys()
        for name, text in true.items():
            _, printed, shown, verdict = rows[name]
            assert printed.replace("\n", "; ") == text
            assert verdict == "agrees with the true value" and fits(text, shown), f"{id} {name}: {shown} is not {text}"
            if not set("±<>") & set(text):
                assert shown.replace("\n", "; ") == text


def test_the_benches_have_all_claims_from_1_to_21():
    shown = {id for ids in BENCHES.values() for id in ids}
    assert {f"N-{number:02}" for number in range(1, 22)} <= shown


def column(page: Page, name: str) -> list[str]:
    """Of the worked example's table, a number a word."""
    table = page.locator(".work table").first
    place = table.locator("thead th").all_inner_texts().index(name)
    return [row.locator("th, td").nth(place).inner_text() for row in table.locator("tbody tr").all()[:6]]


def test_the_worked_example_follows_its_sliders(lab):
    opened = lab()
    page = opened.page
    assert column(page, "score q·k") == CLAIMS["N-01"].true.split()
    assert column(page, "exp") == CLAIMS["N-02"].true["exponentials"].split()
    assert column(page, "weight") == CLAIMS["N-02"].true["weights"].split()
    opened.screenshot("lab-worked")
    page.get_by_role("button", name="the exercise, an action").click()
    assert column(page, "weight") == CLAIMS["N-04"].true["weights"].split()
    page.get_by_role("spinbutton", name="temperature, number").fill("0.1")  # of √4: N-06 at .2
    expect(page.locator(".answer").first).to_contain_text("features by size are: action")
    page.get_by_role("slider", name="action", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("spinbutton", name="action, number", exact=True)).to_have_value("0.91")


def test_the_address_is_a_permanent_link(lab):
    page = lab(bench="worked").page
    page.get_by_role("spinbutton", name="temperature, number").fill("0.5")
    page.get_by_role("checkbox", name="divide scores by √d_k").uncheck()
    page.wait_for_url("**scaled=no**")
    told = {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}
    assert told == {"bench": "worked", "temperature": "0.5", "scaled": "no"}
    again = lab(**told).page
    expect(again.get_by_role("spinbutton", name="temperature, number")).to_have_value("0.5")
    expect(again.get_by_role("checkbox", name="divide scores by √d_k")).not_to_be_checked()
    expect(again.locator(".answer").first).to_contain_text("Scores are divided by 0.5")


@pytest.mark.parametrize(
    "fragment",
    [
        "bench=constructor",
        "bench=worked&query=1,2&keys=;;;&temperature=1e99&top=-4&d_k=NaN&word=__proto__",
        "bench=positions&d=1e9&length=1e9&view=toString&k=abc",
        "bench=shuffle&order=9,9,9,9,9,9,9,9&count=1e9&seed=-1",
        "bench=shuffle&order=1.5,0.2,0,0,0,0,0,0",
        "bench=costs&preset=hasOwnProperty&n=0&d=-5&kernel=1e400",
        "bench=examples&numpy=1e20&four=a,b,c,d",
        "%",
    ],
)
def test_an_address_of_nonsense_shows_a_bench_all_the_same(lab, fragment):
    page = lab(fragment=fragment).page
    expect(page.locator(".work").first).to_be_visible()
    assert "NaN" not in page.locator("main").inner_text()


VIEWS = [
    *((bench, {}) for bench in BENCHES),
    *(("retrieval", {"view": view}) for view in ("Students", "Your own lines", "Movies", "Dictionary")),
    *(("positions", {"view": view}) for view in ("Waves", "A shift is a turn", "Similarity by offset")),
    ("positions", {"view": "Past the training length"}),
    *(("examples", {"view": view}) for view in ("Four scores", "Four words in NumPy", "Additive score")),
]


@pytest.mark.parametrize(
    ("scheme", "bench", "state"),
    [*(("light", *view) for view in VIEWS), *(("dark", bench, {}) for bench in BENCHES)],
)
def test_every_view_is_drawn_and_kept(lab, scheme, bench, state):
    opened = lab({"color_scheme": scheme}, bench=bench, **state)
    expect(opened.page.locator(".figure > svg").first).to_be_visible()
    opened.screenshot("-".join(["lab", bench, *state.values(), scheme]).replace(" ", "-").lower())
    plate = opened.page.locator(".plate").first
    plate.get_by_text("As a table").click()
    expect(plate.locator("tbody tr").first).to_be_visible()


def test_sql_stands_beside_attention(lab):
    page = lab(bench="retrieval", view="Students").page
    expect(page.get_by_role("table", name="Complete rows that SQL returns: 2").locator("tbody tr")).to_have_count(2)
    page.get_by_role("textbox", name="SQL, over").fill("SELECT name FROM students WHERE gpa < 3.5")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("table", name="Complete rows that SQL returns: 1").locator("tbody")).to_have_text("Carol")
    expect(page.locator(".answer")).to_contain_text("A hard lookup returns Alice alone")


@pytest.mark.parametrize("status", [200, 422])
def test_an_earlier_query_does_not_replace_the_answer_to_a_later_one(lab, status):
    opened = lab(bench="retrieval", view="Students")
    page, waiting = opened.page, []
    result = page.get_by_role("table", name="Complete rows that SQL returns")
    expect(result).to_be_visible()
    page.route("**/api/lab/sql", lambda route: waiting.append(route) if not waiting else route.continue_())
    with page.expect_request("**/api/lab/sql"):
        page.get_by_role("button", name="Run").click()
    page.get_by_role("textbox", name="SQL, over").fill("SELECT name FROM students WHERE gpa < 3.5")
    page.get_by_role("button", name="Run").click()
    expect(result.locator("tbody")).to_have_text("Carol")
    (first,) = waiting
    with page.expect_response("**/api/lab/sql"):
        first.fulfill(status=status, json={"columns": ["name"], "rows": [["late"]], "detail": "late"})
    page.wait_for_timeout(300)
    expect(result.locator("tbody")).to_have_text("Carol")
    opened.complaints[:] = [one for one in opened.complaints if "422" not in one]


def test_lines_of_the_reader_are_searched_and_stay_text(lab):
    opened = lab(bench="retrieval", view="Your own lines")
    page = opened.page
    markup = "</script><img src=x onerror=alert(1)> zebra"
    page.get_by_role("textbox", name="one per line").fill(f"{markup}\nsomething else\na third")
    page.get_by_role("textbox", name="text to look for").fill("zebra")
    expect(page.locator(".answer")).to_contain_text(f"A hard search returns “{markup}”")
    assert page.locator("main img").count() == 0
    page.get_by_text("As a table").click()
    expect(page.locator(".plate tbody th").first).to_have_text(markup)


@pytest.mark.parametrize(
    ("query", "best", "difflib"), [("ct", "cat", "0.8000"), ("catt", "cat", "0.8571"), ("dog", "dog", "1.0000")]
)
def test_misspelt_words_find_their_key(lab, query, best, difflib):
    page = lab(bench="retrieval", view="Dictionary", looked=query).page
    row = page.locator(".work table").first.locator("tbody tr", has=page.get_by_text("✓"))
    expect(row.locator("th")).to_have_text(best)
    expect(row.locator("td").nth(2)).to_have_text(difflib)


def test_outputs_stay_where_keys_and_values_are_shuffled_together_alone(lab):
    page = lab(bench="shuffle").page
    answer = page.locator(".answer")
    expect(answer).to_contain_text(re.compile("before and after: none"))
    for moved in ("values alone", "keys alone"):
        page.get_by_role("radio", name=moved).check()
        expect(answer).not_to_contain_text("before and after: none")
    page.get_by_role("radio", name="words of self-attention").check()
    expect(answer).to_contain_text(re.compile("before and after: [1-9].* moved likewise: none"))
    page.get_by_role("radio", name="values alone").check()
    page.get_by_role("button", name="As it was").click()
    expect(answer).to_contain_text("before and after: none")
    page.get_by_role("button", name="1: was 1").press("ArrowRight")
    expect(page.get_by_role("button", name="2: was 1")).to_be_focused()
    expect(answer).not_to_contain_text("before and after: none")


def test_presets_reach_gpt_3_and_points_are_measured(lab):
    opened = lab(bench="costs")
    page = opened.page
    model = page.locator(".work table").first
    expect(model).to_contain_text("63,082,496")
    page.get_by_role("radio", name="GPT-3").check()
    expect(model).to_contain_text("174,604,259,328")
    expect(lab(bench="costs", d=1024, d_ff=4096).page.locator(".work table").first).to_contain_text("my own")
    by_address = lab(bench="costs", preset="GPT-3").page
    expect(by_address.locator(".work table").first).to_contain_text("174,604,259,328")
    page.get_by_role("button", name="Measure here").click()
    expect(page.locator(".answer")).to_contain_text("Lines have the slope")
    assert page.locator(".figure circle").count() >= 6
    opened.screenshot("lab-measured")


def test_a_measurement_that_comes_late_leaves_the_address_of_the_bench_that_is_open_now(lab):
    page, waiting = lab(bench="costs").page, []
    page.route("**/api/lab/measure", lambda route: waiting.append(route))
    with page.expect_request("**/api/lab/measure"):
        page.get_by_role("button", name="Measure here").click()
    page.get_by_role("radio", name="Learning rate").check()
    page.get_by_role("button", name="Show without a guess").click()
    expect(page.get_by_role("heading", name="Learning rate", exact=True)).to_be_visible()
    (measuring,) = waiting
    with page.expect_response("**/api/lab/measure"):
        measuring.fulfill(json=[])
    page.wait_for_timeout(600)
    assert parse_qs(urlsplit(page.url).fragment)["bench"] == ["rates"]


def test_a_picture_is_saved_with_its_colours(lab):
    page = lab(bench="rates").page
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Save this picture").click()
    assert downloading.value.suggested_filename == "learning-rate-by-update.svg"
    text = downloading.value.path().read_text(encoding="utf-8")
    assert len(list(ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}path"))) >= 5
    assert "var(" not in text and "rgb(0, 114, 178)" in text


def imported(page: Page, module: str, body: str, *given: object) -> object:
    """What a function of the page's modules says; `m` is the module, `given` its arguments."""
    return page.evaluate(
        f"async (given) => {{ const m = await import('/static/lab/{module}'); return {body}; }}", list(given)
    )


@pytest.fixture
def page(lab) -> Page:
    return lab(bench="examples").page


def test_softmax_and_attention_are_torch_s(page):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(size, 8, generator=generator, dtype=torch.float64) for size in (5, 7, 7))
    mask = torch.rand(5, 7, generator=generator) < 0.6
    mask[0] = False  # nothing may be seen
    found = imported(page, "mathematics.js", "m.attention(...given)", q.tolist(), k.tolist(), v.tolist())
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), ours(q, k, v), rtol=0, atol=1e-12)
    options = "{ mask: given[2] }"
    found = imported(
        page, "mathematics.js", f"m.weightsOf(given[0], given[1], {options})", q.tolist(), k.tolist(), mask.tolist()
    )
    expected = ours(q, k, torch.eye(7, dtype=torch.float64), mask)
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, rtol=0, atol=1e-12)
    found = imported(page, "mathematics.js", "m.weightsOf(given[0], given[1], { top: 3 })", q.tolist(), k.tolist())
    torch.testing.assert_close(
        torch.tensor(found, dtype=torch.float64), weights(TopKConfig(k=3), q, k), rtol=0, atol=1e-12
    )
    found = imported(page, "mathematics.js", "given[0].map((row) => m.softmax(row, 0.3))", (100 * q).tolist())
    torch.testing.assert_close(
        torch.tensor(found, dtype=torch.float64), (100 * q / 0.3).softmax(-1), rtol=0, atol=1e-12
    )


def test_entropy_and_the_gradient_through_softmax_are_torch_s(page):
    scores = torch.randn(4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = weights(ScaledDotProductConfig(), scores, torch.eye(6, dtype=torch.float64))
    entropies, norms = imported(
        page, "mathematics.js", "[m.entropy, m.jacobianNorm].map((of) => given[0].map(of))", rows.tolist()
    )
    np.testing.assert_allclose(entropies, torch.special.entr(rows).sum(-1), atol=1e-12)
    jacobians = [torch.autograd.functional.jacobian(lambda x: x.softmax(-1), row.log()) for row in rows]
    np.testing.assert_allclose(norms, [jacobian.norm() for jacobian in jacobians], atol=1e-12)


def test_random_numbers_are_numpy_s(page):
    for seed in (0, 42, 2**32 - 1):
        found = imported(page, "random.js", "new m.RandomState(given[0]).vector(1500)", seed)
        np.testing.assert_allclose(found, np.random.RandomState(seed).randn(1500), rtol=1e-12)


def test_positions_are_those_of_the_package(page):
    found = imported(page, "waves.js", "m.codes(50, 16)")
    np.testing.assert_allclose(found, sinusoids(torch.arange(50), 16), atol=1e-6)
    found = imported(page, "waves.js", "m.alibiSlopes(8)")
    np.testing.assert_allclose(found, Alibi(8).slopes, atol=1e-7)
    rotary = RotaryConfig().build(d_model=64, num_heads=1, head_size=64, max_length=100, causal=False)
    q = torch.randn(64, generator=torch.Generator().manual_seed(2))
    turned = rotary.turn(q.expand(1, 1, 100, 64), torch.arange(100))[0, 0]
    found = imported(
        page, "waves.js", "given[1].map((offset) => m.rotaryScore(given[0], offset, 64))", q.tolist(), [*range(100)]
    )
    np.testing.assert_allclose(found, turned @ turned[0], atol=1e-3)


def test_learning_rates_are_those_of_training(page):
    settings = {"d_model": 256, "factor": 2, "warmup": 400, "peak": 1e-3, "left": 0.1}
    warmed = {"learning_rate": 1e-3, "warmup_steps": 400}
    kinds = {
        "noam": schedules.NoamConfig(d_model=256, factor=2, warmup_steps=400),
        "inverse_sqrt": schedules.InverseSqrtConfig(**warmed),
        "constant": schedules.ConstantConfig(**warmed),
        "cosine": schedules.CosineConfig(**warmed, final_ratio=0.1),
        "linear": schedules.LinearConfig(**warmed, final_ratio=0.1),
    }
    updates = [1, 10, 399, 400, 401, 5000, 10_000, 10_100]
    body = "given[1].map((update) => m.rate(given[0], update, update / 10000, given[2]))"
    for kind, schedule in kinds.items():
        found = imported(page, "schedules.js", body, kind, updates, settings)
        np.testing.assert_allclose(found, [schedule.rate(update, update / 10_000) for update in updates], rtol=1e-12)


def test_similarities_of_words_are_difflib_s(page):
    random = np.random.default_rng(0)
    pairs = [["".join(random.choice(list("abc"), random.integers(0, 9))) for _ in range(2)] for _ in range(60)]
    found = imported(page, "similarity.js", "given[0].map(([a, b]) => m.matchingRatio(a, b))", pairs)
    np.testing.assert_allclose(found, [SequenceMatcher(None, a, b).ratio() for a, b in pairs])


def test_digits_agree_by_the_rules_of_verify(page):
    cases = [
        ("0.50", [0.5049], True),
        ("0.50", [0.506], False),
        ("1.5±0.2", [1.69], True),
        ("1.5±0.2", [1.71], False),
        ("<1e-12", [-1e-13], True),
        (">0.1", [-0.2], True),
        (">0.1", [0.05], False),
        ("sat", ["sat"], True),
        ("sat", ["cat"], False),
        ("1 2; 3 4", [[1, 2], [3, 4]], True),
        ("1 2; 3 4", [[1, 2], [3]], False),
        ("6.987712e-4", [6.9877123e-4], True),
        ("6.987712e-4", [6.987713e-4], False),
    ]
    found = imported(page, "digits.js", "given[0].map(([text, value]) => m.agrees(text, value))", cases)
    assert found == [agrees for _, _, agrees in cases]
    for true, value, agrees in cases:
        rows = value if isinstance(value[0], list) else [value]
        assert Figure("", [row.split() for row in true.split(";")], rows, 0.0).ok is agrees


@pytest.mark.parametrize("bench", BENCHES)
def test_pictures_fit_a_phone(lab, bench):
    page = lab({"viewport": {"width": 390, "height": 844}}, bench=bench).page
    figures = page.locator(".figure")
    assert figures.count() > 0
    assert figures.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length") == 0


def test_charts_are_drawn_anew_when_a_window_becomes_narrow(lab):
    page = lab(bench="rates").page
    assert page.locator(".figure svg").first.bounding_box()["width"] > 600
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".figure svg").first).to_have_js_property("clientWidth", 390 - 40)


def test_a_bench_that_is_not_served_is_one_line(lab, address):
    opened = lab(bench="worked")
    opened.page.route("**/lab/rates.js", lambda route: route.abort())
    opened.page.get_by_role("radio", name="Learning rate").check()
    expect(opened.page.get_by_role("alert")).to_contain_text("the studio does not answer")
    opened.complaints.clear()  # the browser's own, of the request
