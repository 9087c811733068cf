"""What happens when one tensor argument is left on the CPU: asked of real CUDA, or of a simulated device.

    python tools/cuda_truth.py                      # where there is a GPU: writes tests/data/cuda_truth.json
    python tools/cuda_truth.py --simulate -o FILE   # the same questions to the simulator

The questions are torch's own operator samples (op_db). An answer is `legal` with the devices of the results, or the
exception's type and words. Operators run by the dozen in processes of their own: a kernel that gets a wrong pointer can
poison CUDA for its process, or kill it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.utils import _pytree as pytree

DEVICE = "cuda:0"
DEFAULT_OUT = Path(__file__).parents[1] / "tests/data/cuda_truth.json"
_BATCH = 24
_POISON = ("device-side assert", "illegal memory access", "misaligned address", "unspecified launch failure")

Answers = dict[str, dict[str, str]]
Folded = dict[str, dict[str, str | dict[str, list[str]]]]


class Sample(NamedTuple):
    """One call of an operator, all of it on the CPU."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def signature(self) -> str:
        """Shapes and dtypes of the tensors: the same in every version of torch that has this sample."""
        return " ".join(
            f"{_short(t.dtype)}{list(t.shape)}" for t in pytree.tree_leaves(self) if isinstance(t, torch.Tensor)
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def operators(names: Sequence[str] = ()) -> list[Any]:
    """torch's own list, or the operators named, those that take float32 on the CPU."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.supports_dtype(torch.float32, "cpu") and (not names or full_name(op) in names)]


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def samples(op: Any, dtype: torch.dtype = torch.float32) -> Iterator[Sample]:
    """Yield the samples of an operator, the same every time."""
    torch.manual_seed(0)
    for sample in inputs(op, dtype):
        yield Sample((sample.input, *sample.args), sample.kwargs)


def inputs(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    """Return torch's samples, without its search through all frames and modules for a unittest: most of the time."""
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    with (
        mock.patch.object(common_utils, "extract_test_fn", _no_unittest, create=True),
        mock.patch.object(core, "extract_test_fn", _no_unittest, create=True),
    ):
        found: Iterator[Any] = iter(op.sample_inputs("cpu", dtype))
    return found


def _no_unittest() -> None:
    return None


def moved(sample: Sample, device: str, but: object = None) -> Sample:
    """A copy of a sample on a device, one tensor excepted."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.clone() if value is but else value.to(device, copy=True)
        if isinstance(value, torch.device) or value == "cpu":
            return torch.device(device)
        return value

    return Sample(*pytree.tree_map(move, tuple(sample)))


def tensors(sample: Sample) -> list[tuple[str, torch.Tensor]]:
    """Return the tensor arguments with their paths: `0`, `1[0]`, `weight`."""
    leaves, _ = pytree.tree_flatten_with_path(tuple(sample))
    return [("".join(map(str, path[1:])), leaf) for path, leaf in leaves if isinstance(leaf, torch.Tensor)]


def current(op: Any) -> Any:
    """Return the function that has an operator's name now: a simulation puts checks before some of torch's."""
    value: Any = torch
    for step in op.name.split("."):
        value = getattr(value, step, None)
    return value if inspect.unwrap(value) is op.op else op.op


def answer(op: Any, sample: Sample) -> str:
    """Return what a call does."""
    torch.manual_seed(7)
    try:
        result = current(op)(*sample.args, **sample.kwargs)
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 (the exception is the answer)
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    devices = sorted({str(leaf.device) for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)})
    return "legal -> " + (", ".join(devices) or "no tensor")


def ask(op: Any) -> dict[str, str]:
    """Every distinct question about an operator: its samples with one tensor left on the CPU."""
    answers: dict[str, str] = {}
    for sample in samples(op):
        found = tensors(sample)
        for path, tensor in found if len(found) > 1 else ():  # one tensor alone mixes nothing
            question = f"{sample.signature} | {path}"
            if question not in answers and not tensor.is_sparse:
                answers[question] = answer(op, moved(sample, DEVICE, but=tensor))
    return answers


def folded(answers: Answers) -> Folded:
    """The same by operator and argument: one answer where all samples have the same, else each with its samples."""
    whole: Folded = {}
    for op, asked in answers.items():
        paths: dict[str, dict[str, list[str]]] = {}
        for question, answer in asked.items():
            signature, _, path = question.rpartition(" | ")
            paths.setdefault(path, {}).setdefault(_plain(answer), []).append(signature)
        whole[op] = {path: next(iter(each)) if len(each) == 1 else dict(each) for path, each in paths.items()}
    return whole


def differences(truth: Folded, seen: Answers) -> list[str]:
    """Questions that both were asked and answered differently, one line each."""
    return [
        f"{op} | {question}: CUDA {answer!r}, simulated {mine!r}"
        for op, paths in truth.items()
        for question, mine in seen.get(op, {}).items()
        if (answer := _answer_of(paths, question)) and not agree(answer, mine)
    ]


def _answer_of(paths: dict[str, str | dict[str, list[str]]], question: str) -> str:
    signature, _, path = question.rpartition(" | ")
    answer = paths.get(path, "")
    if isinstance(answer, str):
        return answer
    return next((one for one, signatures in answer.items() if signature in signatures), "")


def agree(one: str, other: str) -> bool:
    """Legal with the same devices, or the same exception; the words are compared up to what a build lists.

    Those are the names of C++ functions and the backends that have a kernel.
    """
    return _plain(one) == _plain(other)


def _plain(answer: str) -> str:
    return answer.partition(" (when checking argument")[0].partition(" is only available for these backends")[0]


def survey(names: Sequence[str], simulate: bool, at_once: int = 1) -> Answers:
    """Ask all, in processes of their own, so many at a time."""
    waiting = [full_name(op) for op in operators(names)]
    with ThreadPoolExecutor(at_once) as pool:
        parts = pool.map(
            lambda part: _survey_part(part, simulate), [waiting[first::at_once] for first in range(at_once)]
        )
        return {name: answers for part in parts for name, answers in part.items()}


def _survey_part(waiting: Sequence[str], simulate: bool) -> Answers:
    """Ask some, by the dozen; an operator that takes its process down is asked no further."""
    answers: Answers = {}
    while waiting:
        batch = waiting[:_BATCH]
        done = _run_worker(batch, simulate)
        answers |= done
        if len(done) < len(batch):
            lost = batch[len(done)]
            answers[lost] = {"every sample": "the process ended"}
            batch = batch[: len(done) + 1]
        waiting = waiting[len(batch) :]
        sys.stderr.write(f"{len(answers)} operators asked, {len(waiting)} to go\n")
    return answers


def _run_worker(names: Sequence[str], simulate: bool) -> Answers:
    command = [sys.executable, __file__, "--worker", *(["--simulate"] if simulate else [])]
    ran = subprocess.run([*command, *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    done: Answers = {}
    for line in ran.stdout.splitlines():
        if line.startswith("{"):
            done |= json.loads(line)
    return {name: done[name] for name in names if name in done}


def work(names: Sequence[str], simulate: bool) -> None:
    """In a worker: one line of JSON per operator; ends when an answer says that CUDA is poisoned."""
    warnings.simplefilter("ignore")
    by_name = {full_name(op): op for op in operators(names)}
    for name in names:
        with devices_of(simulate):
            answers = ask(by_name[name])
        sys.stdout.write(json.dumps({name: answers}) + "\n")
        sys.stdout.flush()
        if any(words in answer for answer in answers.values() for words in _POISON):
            return


def devices_of(simulate: bool) -> AbstractContextManager[Any]:
    from devtrace import simulate as pretend

    return pretend("cuda:2") if simulate else nullcontext()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tools/cuda_truth.py", description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", help="names of op_db; all by default")
    parser.add_argument("--simulate", action="store_true", help="ask a simulated device instead of a real one")
    parser.add_argument("--at-once", type=int, default=1, help="processes that ask at a time (1)")
    parser.add_argument("-o", "--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.ops, options.simulate)
        return 0
    if not options.simulate and not torch.cuda.is_available():
        sys.stderr.write("truth: got a machine without CUDA; the answers are CUDA's; run it where there is a GPU.\n")
        return 2
    answers = survey(options.ops, options.simulate, options.at_once)
    head = {"torch": torch.__version__, "device": "simulated" if options.simulate else torch.cuda.get_device_name(0)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**head, "answers": folded(answers)}, indent=0, sort_keys=True) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
