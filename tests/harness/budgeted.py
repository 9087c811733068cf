"""Puts programs of the corpora into loops of 100 steps, recorded in full and with a budget: both must find the same.

    cd tests/harness
    python budgeted.py [WORD ...]      every program whose path has one of the words; prints where the two differ
    python budgeted.py FOLDER ...      programs of a folder, each with `main(device)`, in an environment that has
                                       what they import; a loop of one that takes too long is said to
    LOOP_STEPS=40 python budgeted.py ...  loops of fewer steps, for programs that take long
    make long-runs                     all of the corpora

A program is either the loop's body (`body`), or comes once, at a step at which a loop of another model is not recorded
(`between`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import devtrace
from devtrace.diagnosis.findings import Finding
from folders import ROOT, TESTS
from loaded import loaded
from warm import Warm

STEPS = int(os.environ.get("LOOP_STEPS", "100"))
LATE_STEP = STEPS * 3 // 5
ABOUT = 0.02
"""Counts may differ by this part, or by one."""
_NUMBER = re.compile(r"#\d+")
"""Of a module that is not the first of its name: it counts them, about."""
Found = tuple[tuple[str, str, str], tuple[str, str, str, str], int]
"""Rule, severity and line; cause, and the culprit's name, birth and move; count."""


Seen = tuple[str, list[Found], tuple[str, ...]]
"""What a program raised, what was found of it, and the notes."""


def as_body(run: Callable[[], object]) -> None:
    """Run a program 100 times; its errors are caught."""
    for _ in range(STEPS):
        try:
            run()
        except Exception:  # noqa: BLE001 (the program's own failure is what is studied)
            continue


def as_rare_step(run: Callable[[], object]) -> None:
    """Train a model for 100 steps; at one of the last run the program."""
    model = torch.nn.Linear(4, 2).to("cuda:0")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.ones(3, 4, device="cuda:0")
    for step in range(STEPS):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if step == LATE_STEP:
            run()


WAYS: dict[str, Callable[[Callable[[], object]], None]] = {"body": as_body, "between": as_rare_step}


def findings(path: str, way: str, budget: str, *arguments: str) -> Seen:
    """Run a program's file."""
    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(path).parent))

    def run() -> None:
        program = loaded(path)
        begin = getattr(program, "run", None) or program.main
        WAYS[way](lambda: begin(*arguments))

    return seen(run, float(budget) if budget else None)


def seen(run: Callable[[], object], budget: float | None) -> Seen:
    """Record a program."""
    raised = ""
    torch.manual_seed(0)
    try:
        with devtrace.record(simulate="cuda:2", budget=budget) as recording:
            run()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        raised = f"{type(error).__name__}: {error}"
    return raised, [_summary(finding) for finding in recording.report.findings], recording.report.notes


def _summary(finding: Finding) -> Found:
    culprit = finding.culprit
    name = _NUMBER.sub("", culprit.name) if culprit is not None else ""
    seen = (name, str(culprit.born or ""), str(culprit.moved or "")) if culprit is not None else ("", "", "")
    return (finding.rule, finding.severity, str(finding.site)), (finding.cause, *seen), finding.count


def compare(path: Path, way: str, arguments: Sequence[str], warm: Warm) -> tuple[list[str], list[str]]:
    """Return what a recording with a budget says that a full one does not say, and what it leaves out, a line each."""
    whole, short = (warm.call("budgeted", "findings", str(path), way, budget, *arguments) for budget in ("", "0.1"))
    return differences(whole, short)


def differences(whole: Seen, short: Seen) -> tuple[list[str], list[str]]:
    """Return what the second recording says that the first one does not say, and what it leaves out, a line each."""
    wrong = [f"raised {short[0]!r} for {whole[0]!r}"] if short[0] != whole[0] else []
    expected, got = ({where: (claim, count) for where, claim, count in found} for _, found, _ in (whole, short))
    left_out = [f"nothing of {where}" for where in expected if where not in got]
    for where, (claim, count) in got.items():
        if where[2] == "None" and any(where[:2] == other[:2] for other in expected):
            continue
        if where not in expected:
            wrong.append(f"only with a budget: {where}")
            continue
        full_claim, full_count = expected[where]
        if any(one not in ("", "unknown", "a tensor", other) for one, other in zip(claim, full_claim, strict=True)):
            wrong.append(f"{claim} for {full_claim}: {where}")
        elif claim != full_claim:
            left_out.append(f"{claim} of {full_claim}: {where}")
        if abs(count - full_count) > max(ABOUT * full_count, 1):
            left_out.append(f"{count} times for {full_count}: {where}")
    return wrong, left_out


def programs_in(folder: Path) -> list[tuple[Path, tuple[str, ...]]]:
    return [(path, ("cuda:0",)) for path in sorted(folder.glob("*.py"))]


def programs() -> list[tuple[Path, tuple[str, ...]]]:
    from corpus_programs import PROGRAMS

    corpus = [(program.path, program.arguments) for program in PROGRAMS]
    return corpus + programs_in(TESTS / "zoo")


def main(words: Sequence[str]) -> int:
    counts = {"wrong": 0, "less": 0, "same": 0, "not compared": 0}
    ways = [way for way in WAYS if way in words] or list(WAYS)
    folders = [Path(word) for word in words if os.path.isdir(word)]
    words = [word for word in words if word not in WAYS and not os.path.isdir(word)]
    among = [each for folder in folders for each in programs_in(folder)] if folders else programs()
    with Warm() as warm:
        chosen = [each for each in among if not words or any(word in str(each[0]) for word in words)]
        for path, arguments in chosen:
            for way in ways:
                name = f"{os.path.join(*path.parts[-3:])} ({way})"
                print(name, file=sys.stderr, flush=True)
                try:
                    wrong, left_out = compare(path, way, arguments, warm)
                except AssertionError as ended:  # of the fork: it took too long, or did not come to its end
                    counts["not compared"] += 1
                    print(name, f"not compared: {str(ended)[-300:]}", sep="\n    ", flush=True)
                    continue
                counts["wrong" if wrong else "less" if left_out else "same"] += 1
                if wrong or left_out:
                    lines = [*(f"WRONG {line}" for line in wrong), *left_out]
                    print(name, *lines, sep="\n    ", flush=True)
    print(counts)
    return int(counts["wrong"] > 0)


def load() -> None:
    """For `warm`: torch and devtrace are there when a program starts."""


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    sys.exit(main(sys.argv[1:]))
