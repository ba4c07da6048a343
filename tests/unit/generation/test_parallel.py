import subprocess
import sys
import textwrap
import threading

import pytest
import torch

from regardant.generation.parallel import each_in_parallel


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

    found = list(each_in_parallel(meet, "abcd", 2))
    assert [item for item, *_ in found] == list("abcd")
    assert {threads for _, threads, _ in found} == {1}
    assert len({thread for *_, thread in found} - {threading.get_ident()}) == 2
    assert torch.get_num_threads() == 2


def test_in_turn_they_are_worked_on_by_one_thread_of_one(two_threads):
    def work(item):
        return item, torch.get_num_threads(), threading.get_ident()

    found = list(each_in_parallel(work, "abc", 2, in_turn=True))
    assert [item for item, *_ in found] == list("abc")
    assert {threads for _, threads, _ in found} == {1}
    (thread,) = {thread for *_, thread in found}
    assert thread != threading.get_ident()


@pytest.mark.parametrize(("items", "threads"), [("a", 4), ("abc", 1), ("", 3)])
def test_one_at_a_time_is_left_to_torch(two_threads, items, threads):
    found = list(each_in_parallel(lambda item: (item, torch.get_num_threads()), items, threads))
    assert found == [(item, 2) for item in items]


def test_what_fails_in_a_thread_fails_here_and_leaves_torch_as_it_was(two_threads):
    worked = []

    def fail(item):
        worked.append(item)
        raise ValueError(f"no {item}")

    with pytest.raises(ValueError, match="no 0"):
        list(each_in_parallel(fail, range(1000), 2))
    assert len(worked) < 1000
    assert torch.get_num_threads() == 2
    started = []
    later = threading.Thread(target=lambda: started.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert started == [2]


def in_a_program(text):
    """What a program prints that is alone in its process, as these tests are not; its last line of errors, if any."""
    program = textwrap.dedent("""
        import os, threading, time, torch
        from regardant.errors import RunError
        from regardant.generation.parallel import each_in_parallel
        torch.set_num_threads(2)
    """) + textwrap.dedent(text)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    return ended.stdout.split(), ended.stderr.splitlines()[-1:]


def test_many_are_shared_by_processes_that_have_what_this_one_has():
    told, _ = in_a_program("""
        held = torch.arange(8) ** 2
        def work(item):
            time.sleep(0.05)
            return held[item].item(), os.getpid(), torch.get_num_threads()
        squares, processes, threads = zip(*each_in_parallel(work, range(8), 2))
        print(list(squares) == [n * n for n in range(8)], len(set(processes) - {os.getpid()}), set(threads) == {1})
        print(torch.get_num_threads())
    """)
    assert told == ["True", "2", "True", "2"]


@pytest.mark.parametrize("hindrance", ["beside a thread", "few"])
def test_threads_take_their_place_where_forking_is_not_safe_or_worth_it(hindrance):
    told, _ = in_a_program(f"""
        done = threading.Event()
        if {hindrance == "beside a thread"}:
            threading.Thread(target=done.wait).start()
        items = range({8 if hindrance == "beside a thread" else 7})
        print({{pid for pid in each_in_parallel(lambda item: os.getpid(), items, 2)}} == {{os.getpid()}})
        done.set()
    """)
    assert told == ["True"]


def test_what_fails_in_a_process_fails_here():
    _, error = in_a_program("""
        def fail(item):
            raise RunError(f"no {item}")
        list(each_in_parallel(fail, range(8), 2))
    """)
    assert error == ["regardant.errors.RunError: no 0"]


def test_a_process_that_is_killed_is_told():
    _, error = in_a_program("""
        list(each_in_parallel(lambda item: os.kill(os.getpid(), 9), range(8), 2))
    """)
    assert error[0].startswith("regardant.errors.RunError: a process that translates was killed")
