"""Traces that nobody should have to read: text that is markup, numbers that make no sense, too much of everything."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import make_traces
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.format import encode
from devtrace.trace.tables import TraceData

MARKUP = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>'
TEXTS = (
    MARKUP,
    '"><svg/onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "</script><script>window.hacked=1</script>",
    "x" * 1_000_000,
    "\u202egnp.exe \u200f\u0647\u0630\u0627",
    "🙂👩‍👩‍👧‍👦",
    "\ud800 \udfff",
    "\x00\x07\x1b[31m\r\n\t",
    "",
)
NUMBERS: tuple[Any, ...] = (-1, -2, 0, 1, 0.5, 7, 2**31, 2**53, 2**60, -(2**40), 1e308, None, True, "7", [], {})


KNOWN = {"forward", "backward", "optimizer", "other", "compute", "view", "create", "copy", "sync", "parameter"}
LONG = 1000
"""A text longer than this replaces one word of each kind: all words would make a file of 100 MB."""


def with_text(trace: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the trace with its words replaced, but for those that mean something to the views."""
    changed = copy.deepcopy(trace)
    replaced = set(range(len(changed["strings"]))) if len(text) < LONG else _one_of_each(changed)
    words = enumerate(changed["strings"])
    changed["strings"] = [text if at in replaced and word not in KNOWN else word for at, word in words]
    changed["title"] = text
    changed["notes"] = [text]
    short = text[:LONG]
    for finding in changed["findings"] or []:
        finding.update(rule=short, cause=short, message=text, help=short)
        finding["edits"] = [{"file": short, "cell": -1, "line": 1, "before": short, "after": text}]
        if finding["culprit"]:
            finding["culprit"].update(name=text, names=[short], device=short, dtype=short)
    return changed


def _one_of_each(trace: dict[str, Any]) -> set[int]:
    columns = (
        *(("sites", name) for name in ("file", "text", "function")),
        *(("modules", name) for name in ("path", "type")),
        ("sources", "text"),
        ("devices", "name"),
        ("threads", "name"),
        ("errors", "message"),
    )
    return {trace[table][column][-1] for table, column in columns if isinstance(trace[table][column], list)}


def mutants(trace: dict[str, Any], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Copies of a trace with a few of its values replaced, dropped, swapped or cut."""
    draw = random.Random(seed)
    for _ in range(count):
        mutant = copy.deepcopy(trace)
        for _ in range(draw.randint(1, 4)):
            _mutate(mutant, draw)
        yield mutant


def _mutate(node: Any, draw: random.Random) -> None:
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = draw.choice(keys)
        child = node[key]
        if not isinstance(child, dict | list) or not child or draw.random() < 0.15:
            break
        node = child
    change = draw.randrange(4)
    if change == 0 and isinstance(node, dict):
        del node[key]
    elif change == 1 and isinstance(child, list) and child:
        del child[draw.randrange(len(child)) :]
    elif change == 2 and isinstance(child, list):
        draw.shuffle(child)
    else:
        node[key] = draw.choice(TEXTS[:4] + TEXTS[5:] if isinstance(child, str) else NUMBERS)


def huge(devices: int, threads: int) -> TraceData:
    """An op on each device and in each thread, with a copy to it and a module of its own."""
    b = TraceBuilder(title="huge")
    ids = [b.device("cpu"), *(b.device(f"cuda:{i}") for i in range(devices - 1))]
    for i in range(max(devices, threads)):
        if i < threads:
            b.append("threads", name=f"thread {i}", rank=0)
        module = b.append("modules", path=f"model.{i}", type="Linear", op=-1, ran=1)
        call = b.append("calls", module=module, begin=i, end=i + 1, thread=min(i, threads - 1), training=1)
        device = ids[i % devices]
        op = b.append(
            "ops", name="aten.mm", start=i * 10, duration=9, device=device, kind="compute", phase="forward", call=call,
            thread=min(i, threads - 1), grad=1,
        )  # fmt: skip
        b.append("copies", op=op, **{"from": ids[0]}, to=device, bytes=2**40, pinned=0, non_blocking=0)
    return b.build()


def failing() -> dict[str, Any]:
    return encode(make_traces.failing())
