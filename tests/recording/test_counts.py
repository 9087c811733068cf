"""What another thread sees of a recording that runs agrees with the trace that it becomes."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from devtrace.api.recording import record
from devtrace.recording.progress import Counter as Looker
from devtrace.recording.progress import Counts


def looker(recording: record) -> Looker:
    counter = recording.counter()
    assert counter is not None
    return counter


def elsewhere(counter: Looker) -> Counts:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(counter.look).result()


def test_counts_agree_with_the_trace_in_the_end() -> None:
    with record(simulate="cuda:2") as recording:
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LSTM(8, 4)).to("cuda:0")
        out, _ = model(torch.rand(3, 5, 8).to("cuda:0"))
        out.sum().backward()
        torch.rand(4).to("cuda:1").add_(1).topk(2)
        seen = elsewhere(looker(recording))
    trace = recording.trace
    assert seen.ops == len(trace.ops)
    assert {device: ops for device, (ops, _) in seen.devices.items()} == Counter(str(op.device) for op in trace.ops)
    assert (seen.copies, seen.copied) == (len(trace.copies), sum(copy.bytes for copy in trace.copies))


def test_counts_grow_over_many_looks_and_count_nothing_twice() -> None:
    with record() as recording:
        counter = looker(recording)
        seen = []
        for _ in range(5):
            for _ in range(2000):
                torch.ones(4).add_(1)
            seen.append(elsewhere(counter))
    assert [each.ops for each in seen] == [4000, 8000, 12000, 16000, 20000]
    assert [each.devices for each in seen] == [{"cpu": (each.ops, each.ops // 2 * 16)} for each in seen]


def test_a_look_may_fall_anywhere_while_other_threads_record() -> None:
    looks: list[Counts] = []
    with record() as recording:
        counter = looker(recording)
        done = threading.Event()

        def work() -> None:
            for _ in range(3000):
                torch.ones(2) + torch.ones(2)
            done.set()

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            while not done.is_set():
                looks.append(counter.look())
            running.result()
        last = counter.look()
    assert [each.ops for each in looks] == sorted(each.ops for each in looks)
    assert last.ops == len(recording.trace.ops)
    assert last.devices["cpu"][0] == last.ops


def test_there_is_nothing_to_ask_before_and_after() -> None:
    recording = record()
    assert recording.counter() is None
    with recording:
        pass
    assert recording.counter() is None
