"""What the queue of a run puts into a batch, when it is computed, and what is not."""

import runpy
import sys
import time
from threading import Event, get_ident

import pytest
import torch

from regardant.errors import ConfigError
from regardant.generation.parallel import one_thread
from regardant.server import metrics
from regardant.server.limits import Limits, Refusal
from regardant.server.metrics import Metrics
from regardant.server.worker import ModelCall, Worker


class Computing:
    """A computation that records its batches, and waits for `free` before each."""

    def __init__(self):
        self.batches, self.threads = [], set()
        self.begun, self.free = Event(), Event()
        self.free.set()

    def __call__(self, run, rows):
        self.batches.append(list(rows))
        self.threads.add(get_ident())
        self.begun.set()
        assert self.free.wait(10)
        if "bad" in rows:
            raise ValueError("a bad row")
        return [row.upper() for row in rows]


@pytest.fixture
def computing():
    return Computing()


@pytest.fixture
def make():
    """A worker with these limits, which is closed at the end."""
    made = []

    def make_(**limits):
        made.append(Worker("mine", None, Limits(**{"max_wait_ms": 0, **limits}), Metrics()))
        return made[-1]

    yield make_
    for worker in made:
        worker.close()
        assert not worker.is_alive


def occupied(worker, computing):
    """Have a worker compute a first call until `free` is set."""
    computing.free.clear()
    first = worker.submit(ModelCall(computing, ["first"], kind="a"))
    assert computing.begun.wait(10)
    return first


def submit(worker, computing, *texts, kind="a"):
    return [worker.submit(ModelCall(computing, [text], len(text), kind)) for text in texts]


def test_a_worker_has_all_threads_though_another_is_in_a_search_with_one(make, computing):
    before = torch.get_num_threads()
    torch.set_num_threads(2)  # tests have one
    try:
        one = make()
        inside, free = Event(), Event()

        def search(run, rows):
            with one_thread():
                inside.set()
                assert free.wait(10)
            return rows

        def threads(run, rows):
            return [torch.get_num_threads()]

        first = one.submit(ModelCall(search, ["a"]))
        assert inside.wait(10)
        other = make()  # its thread begins with the number that the search has set
        found = other.submit(ModelCall(threads, ["a"])).result(10)
        free.set()
        assert first.result(10) == ["a"]
        assert found == other.submit(ModelCall(threads, ["a"])).result(10) == [2]
    finally:
        torch.set_num_threads(before)


def test_calls_that_come_while_the_model_is_busy_share_the_next_batch(make, computing):
    worker = make()
    first = occupied(worker, computing)
    answers = submit(worker, computing, "a", "b", "c")
    assert worker.rows_waiting == 3
    computing.free.set()
    assert [one.result(10) for one in (first, *answers)] == [["FIRST"], ["A"], ["B"], ["C"]]
    assert computing.batches == [["first"], ["a", "b", "c"]]
    assert worker.metrics.registry.get_sample_value("regardant_batch_rows_sum", {"run": "mine"}) == 4


def test_one_thread_uses_the_model(make, computing):
    worker = make(max_batch=1)
    for answer in submit(worker, computing, *"abcdef"):
        answer.result(10)
    assert len(computing.threads) == 1 and get_ident() not in computing.threads


def test_a_batch_holds_no_more_rows_than_it_may(make, computing):
    worker = make(max_batch=2)
    occupied(worker, computing)
    answers = submit(worker, computing, *"abcde")
    computing.free.set()
    assert [one.result(10) for one in answers] == [[letter] for letter in "ABCDE"]
    assert computing.batches[1:] == [["a", "b"], ["c", "d"], ["e"]]


def test_rows_of_a_request_stay_together(make, computing):
    worker = make(max_batch=3)
    occupied(worker, computing)
    answers = [worker.submit(ModelCall(computing, rows, 1, "a")) for rows in (["a", "b"], ["c", "d"], ["e"])]
    computing.free.set()
    assert [one.result(10) for one in answers] == [["A", "B"], ["C", "D"], ["E"]]
    assert computing.batches[1:] == [["a", "b", "e"], ["c", "d"]]


def test_calls_of_like_length_share_a_batch_and_the_oldest_is_in_it(make, computing):
    worker = make(max_batch=2)
    occupied(worker, computing)
    answers = submit(worker, computing, "aaaa", "b", "cccccccc", "dd", "eeeee")
    computing.free.set()
    for one in answers:
        one.result(10)
    assert computing.batches[1:] == [["aaaa", "eeeee"], ["b", "dd"], ["cccccccc"]]


def test_calls_of_other_kinds_have_batches_of_their_own(make, computing):
    worker = make()
    occupied(worker, computing)
    answers = [*submit(worker, computing, "a"), *submit(worker, computing, "b", kind="b")]
    answers += [*submit(worker, computing, "c"), *submit(worker, computing, "d", "e", kind=None)]
    computing.free.set()
    for one in answers:
        one.result(10)
    assert computing.batches[1:] == [["a", "c"], ["b"], ["d"], ["e"]]


def test_a_call_waits_for_others_until_its_time_is_over(make, computing):
    worker = make(max_wait_ms=400)
    began = time.monotonic()
    (first,) = submit(worker, computing, "a")
    time.sleep(0.1)
    (second,) = submit(worker, computing, "b")
    assert (first.result(10), second.result(10)) == (["A"], ["B"])
    assert computing.batches == [["a", "b"]] and 0.35 < time.monotonic() - began < 5


@pytest.mark.parametrize(("rows", "kind"), [(["a", "b"], "a"), (["a"], None)])
def test_a_full_batch_and_a_call_that_stays_alone_do_not_wait(make, computing, rows, kind):
    worker = make(max_batch=2, max_wait_ms=60_000)
    assert worker.submit(ModelCall(computing, rows, 1, kind)).result(10)


def test_a_call_without_a_client_is_not_computed(make, computing):
    worker = make()
    first = occupied(worker, computing)
    answers = submit(worker, computing, "a", "b", "c")
    assert answers[1].cancel() and not first.cancel()
    computing.free.set()
    assert answers[2].result(10) == ["C"]
    assert computing.batches == [["first"], ["a", "c"]]
    assert worker.metrics.registry.get_sample_value("regardant_dropped_total", {"run": "mine"}) == 1


def test_a_mistake_in_one_call_is_none_of_the_others(make, computing):
    worker = make()
    occupied(worker, computing)
    good, bad, better = submit(worker, computing, "a", "bad", "b")
    computing.free.set()
    assert (good.result(10), better.result(10)) == (["A"], ["B"])
    with pytest.raises(ValueError, match="a bad row"):
        bad.result(10)
    assert submit(worker, computing, "still there")[0].result(10) == ["STILL THERE"]


def test_a_full_queue_refuses_new_requests_and_goes_on_with_begun_ones(make, computing):
    worker = make(max_queue=2)
    occupied(worker, computing)
    submit(worker, computing, "a", "b")
    with pytest.raises(Refusal, match=r"2 items are waiting .* allowed are 2: try again in 1 s") as refused:
        submit(worker, computing, "c")
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    assert worker.submit(ModelCall(computing, ["begun"]), is_begun=True)
    computing.free.set()


def test_places_in_the_queue_of_clients_that_left_are_free_again(make, computing):
    worker = make(max_queue=2)
    occupied(worker, computing)
    left, _ = submit(worker, computing, "a", "b")
    left.cancel()
    (taken,) = submit(worker, computing, "c")
    computing.free.set()
    assert taken.result(10) == ["C"]


def test_without_the_extra_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"^the server needs prometheus_client: pip install 'regardant\[serve\]'$"):
        runpy.run_path(metrics.__file__)


def test_a_worker_that_is_closed_answers_what_waits(make, computing):
    worker = make(max_wait_ms=60_000)
    answers = submit(worker, computing, "a", "b")
    worker.close()
    assert [one.result(0) for one in answers] == [["A"], ["B"]]
