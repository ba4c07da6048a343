import threading

import pytest
import torch

from regardant.generation.threads import each_by_a_thread


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_two_are_worked_on_at_a_time_each_by_one_thread(two_threads):
    met = threading.Barrier(2, timeout=20)

    def meet(item):
        met.wait()
        return item, torch.get_num_threads(), threading.get_ident()

    found = list(each_by_a_thread(meet, "abcd", 2))
    assert [item for item, *_ in found] == list("abcd")
    assert {threads for _, threads, _ in found} == {1}
    assert len({thread for *_, thread in found} - {threading.get_ident()}) == 2
    assert torch.get_num_threads() == 2


def test_in_turn_they_are_worked_on_by_one_thread_of_one(two_threads):
    def work(item):
        return item, torch.get_num_threads(), threading.get_ident()

    found = list(each_by_a_thread(work, "abc", 2, in_turn=True))
    assert [item for item, *_ in found] == list("abc")
    assert {threads for _, threads, _ in found} == {1}
    (thread,) = {thread for *_, thread in found}
    assert thread != threading.get_ident()


@pytest.mark.parametrize(("items", "threads"), [("a", 4), ("abc", 1), ("", 3)])
def test_one_at_a_time_is_left_to_torch(two_threads, items, threads):
    found = list(each_by_a_thread(lambda item: (item, torch.get_num_threads()), items, threads))
    assert found == [(item, 2) for item in items]


def test_what_fails_in_a_thread_fails_here_and_leaves_torch_as_it_was(two_threads):
    worked = []

    def fail(item):
        worked.append(item)
        raise ValueError(f"no {item}")

    with pytest.raises(ValueError, match="no 0"):
        list(each_by_a_thread(fail, range(1000), 2))
    assert len(worked) < 1000
    assert torch.get_num_threads() == 2
    started = []
    later = threading.Thread(target=lambda: started.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert started == [2]
