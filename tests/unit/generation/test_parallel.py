import subprocess
import sys
import textwrap
import threading

import pytest
import torch

from regardant.generation.parallel import share_out


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def told(items):
    """What was worked on, by whom, with how many threads."""
    return [(item, threading.get_ident(), torch.get_num_threads()) for item in items]


def test_two_work_at_a_time_each_by_one_thread_and_every_item_is_taken_once(two_threads):
    met = threading.Barrier(2, timeout=20)

    def meet(items):
        met.wait()
        return told(items)

    found = [one for part in share_out(meet, "abcd", 2, fork=False) for one in part]
    assert sorted(item for item, *_ in found) == list("abcd")
    assert {threads for *_, threads in found} == {1}
    assert threading.get_ident() not in {thread for _, thread, _ in found}
    assert torch.get_num_threads() == 2


def test_who_is_ready_gets_the_next_one(two_threads):
    others_done = threading.Event()

    def work(items):
        taken = []
        for item in items:
            taken.append(item)
            if item == "slow":
                assert others_done.wait(timeout=20)
            elif item == "d":
                others_done.set()
        return taken

    parts = list(share_out(work, ["slow", "a", "b", "c", "d"], 2, fork=False))
    assert sorted(parts) == [["a", "b", "c", "d"], ["slow"]]


def test_what_fails_in_a_thread_fails_here_and_leaves_torch_as_it_was(two_threads):
    worked = []

    def fail(items):
        for item in items:
            worked.append(item)
            raise ValueError("none of them")

    with pytest.raises(ValueError, match="none of them"):
        list(share_out(fail, range(1000), 2, fork=False))
    assert len(worked) <= 2
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
        from regardant.generation.parallel import share_out
        torch.set_num_threads(2)
    """) + textwrap.dedent(text)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    return ended.stdout.split(), ended.stderr.splitlines()[-1:]


def test_many_are_shared_with_processes_that_have_what_this_one_has():
    said, _ = in_a_program("""
        held = torch.arange(12) ** 2
        def work(items):
            return [(held[item].item(), os.getpid(), torch.get_num_threads(), time.sleep(0.05)) for item in items]
        found = [one for part in share_out(work, range(12), 3) for one in part]
        squares, processes, threads, _ = zip(*found)
        print(sorted(squares) == [n * n for n in range(12)], os.getpid() in processes, len(set(processes)))
        print(set(threads) == {1}, torch.get_num_threads())
    """)
    assert said == ["True", "True", "3", "True", "2"]


@pytest.mark.parametrize("hindrance", ["beside a thread", "not worth it"])
def test_threads_take_their_place_where_forking_is_not_safe_or_worth_it(hindrance):
    said, _ = in_a_program(f"""
        done = threading.Event()
        if {hindrance == "beside a thread"}:
            threading.Thread(target=done.wait).start()
        work = lambda items: [os.getpid() for _ in items]
        parts = share_out(work, range(8), 2, fork={hindrance == "beside a thread"})
        print({{pid for part in parts for pid in part}} == {{os.getpid()}})
        done.set()
    """)
    assert said == ["True"]


IN_THE_OTHER = """
    here = os.getpid()
    taken = []
    def work(items):
        for item in items:
            if os.getpid() != here:
                {happens}
            taken.append(item)
            time.sleep(0.05)
    try:
        list(share_out(work, range(100), 2))
    finally:
        print(len(taken) < 100, torch.get_num_threads())
"""
"""This process goes on for five seconds, unless it sees what happens in the other."""


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ("raise RunError(f'not {type(item).__name__}')", "not int"),
        ("os.kill(os.getpid(), 9)", "a process of the search was killed"),
    ],
)
def test_what_fails_in_the_other_process_fails_here_and_nothing_is_begun_afterwards(happens, said):
    printed, (error,) = in_a_program(IN_THE_OTHER.format(happens=happens))
    assert printed == ["True", "2"]
    assert error.startswith(f"regardant.errors.RunError: {said}")


def test_what_fails_here_is_told_and_nothing_is_begun_afterwards():
    printed, (error,) = in_a_program("""
        here, begun = os.getpid(), time.monotonic()
        def work(items):
            for item in items:
                if os.getpid() == here:
                    raise RunError("not here")
                time.sleep(0.05)
        try:
            list(share_out(work, range(1000), 2))
        finally:
            print(time.monotonic() - begun < 20, torch.get_num_threads())
    """)
    assert printed == ["True", "2"]
    assert error == "regardant.errors.RunError: not here"
