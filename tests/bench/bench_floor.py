"""What recording needs of one op at the least: an empty mode that does one thing more on each rung, then devtrace.

Each rung is a dispatch mode of a few lines that asks or notes what a trace needs and checks nothing: no error, no
tensor of another class, no list of tensors, no other thread. What devtrace costs above the last rung is those checks
and what joins them. A training step under each in turn, each one's fastest; of one layer, since a busy machine leaves
short steps alone.

    python tests/bench/bench_floor.py [ROUNDS]
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._C import _current_autograd_node, _current_graph_task_id
from torch._C._autograd import _get_sequence_nr

from devtrace.recording.columns import stamps
from devtrace.recording.columns.operator_info import FIRST_ARGUMENT, ONE, learn_operator, operators
from devtrace.recording.context import hooks

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bench_record import Empty, Recorded, Ways, encoder, fastest, ops_of

ROUNDS, LAYERS = 300, 1
CALL = "out = func(*args, **(kwargs or none))"


class Rung(NamedTuple):
    """One thing that a mode does more than the one before it: before the op, after it, or in calling it."""

    name: str
    before: str = ""
    after: str = ""
    call: str = ""


RUNGS = [
    Rung(
        "the operator's entry by its id, called without OpOverload's frame",
        "operator = operators.get(id(func)) or learn_operator(func)",
        call="out = operator.call(*args, **(kwargs or none))",
    ),
    Rung("the clock, twice", "start = clock()", "end = clock()"),
    Rung("whether a function mode is on", "function_modes()"),
    Rung("the current autograd node", "node = current_node()"),
    Rung(
        "autograd's number; the line, forward",
        """
if node is None:
    number, frame = counter(), caller(1)
    code, line = frame.f_code, frame.f_lasti
else:
    ident()
    current_task()
    number = node._sequence_nr()
""",
    ),
    Rung("grad mode", "grad()"),
    Rung(
        "each input's storage, its stamp, its row by shape",
        """
rows = []
for value in args:
    if type(value) is Tensor or type(value) is Parameter:
        stamp = value.untyped_storage()._devtrace_stamp
        rows.append(stamp[1].get(value.shape) if stamp[0] is epoch else -1)
""",
    ),
    Rung(
        "a result's storage, shape, dtype, device; a new one's stamp",
        after="""
if operator.result_kind == ONE and type(out) is Tensor:
    storage, shape = out.untyped_storage(), out.shape
    stamp = storage._devtrace_stamp
    if stamp[0] is not epoch:
        out.dtype, out.device
        storage._devtrace_stamp = (epoch, {shape: 0}, 0, None)
    elif stamp[1].get(shape) is None:
        stamp[1][shape] = 0
elif operator.result_kind == FIRST_ARGUMENT:
    rows[0]
""",
    ),
    Rung("seven numbers and the rows, appended", after="heads += (7, 6, start, end, number, 2, 1)\nflat += rows"),
]


def modes() -> Ways:
    """Return for each rung what makes its mode."""
    return {rung.name: _mode(RUNGS[: index + 1]) for index, rung in enumerate(RUNGS)}


def _mode(rungs: list[Rung]) -> Callable[[], Any]:
    call = next((rung.call for rung in reversed(rungs) if rung.call), CALL)
    parts = [*(rung.before for rung in rungs), call, *(rung.after for rung in rungs), "return out"]
    body = "\n".join(line for part in parts for line in part.splitlines() if line)
    text = "def __torch_dispatch__(self, func, types, args=(), kwargs=None, heads=heads, flat=flat):\n"
    text += "".join(f"    {line}\n" for line in body.splitlines())
    heads: list[int] = []
    flat: list[int] = []
    names: dict[str, Any] = {
        "operators": operators, "learn_operator": learn_operator, "none": {}, "clock": time.perf_counter_ns,
        "function_modes": torch._C._len_torch_function_stack, "current_node": _current_autograd_node,
        "counter": _get_sequence_nr, "caller": sys._getframe, "ident": threading.get_ident,
        "current_task": _current_graph_task_id, "grad": torch.is_grad_enabled, "Tensor": torch.Tensor,
        "Parameter": torch.nn.Parameter, "ONE": ONE, "FIRST_ARGUMENT": FIRST_ARGUMENT, "heads": heads, "flat": flat,
    }  # fmt: skip
    exec(text, names)

    def make() -> Any:
        heads.clear()
        flat.clear()
        names["epoch"] = stamps.new_epoch()
        return type("Rung", (Empty,), {"__torch_dispatch__": names["__torch_dispatch__"]})()

    return make


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    torch.set_num_threads(1)
    step = encoder(64, 4, LAYERS)
    for _ in range(3):
        step()
    ops = ops_of(step)
    hooks.install()  # a storage without a stamp answers
    times = fastest(step, {"an empty mode": Empty, **modes(), "devtrace": Recorded}, rounds)
    empty = times["an empty mode"]
    print(f"| a step of {ops:,} ops; each row does one thing more | ns more an op | × empty mode |\n|---|---:|---:|")
    before = empty
    for name, value in times.items():
        print(f"| {name} | {(value - before) / ops * 1e9:.0f} | {value / empty:.2f} |")
        before = value
    print(f"\nAn empty mode's op takes {empty / ops * 1e9:,.0f} ns with its kernel; load {os.getloadavg()[0]:.1f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
