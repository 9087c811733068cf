"""Runs PyTorch's own device tests on simulated devices and on the CPU: a sample of minutes, ARGS=all, or some files.

The tests come with Debian's source package `pytorch`, which `apt-get source` brings to build/suites where they are
not there yet. Writes counts.tsv and failing.tsv in tests/suites: what ran, beside what they have of other files.
Writes the sum into docs/suites.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SUITES = ROOT / "tests" / "suites"
WORK = ROOT / "build" / "suites"
MINUTES = 15
FILES = [
    "test_torch",
    "test_indexing",
    "test_view_ops",
    "test_shape_ops",
    "test_sort_and_select",
    "test_scatter_gather_ops",
    "test_reductions",
    "test_type_promotion",
    "test_tensor_creation_ops",
    "test_serialization",
    "test_dlpack",
    "test_autocast",
    "test_autograd",
    "test_optim",
    "test_cuda",
    "test_cuda_multigpu",
    "nn/test_embedding",
    "nn/test_pooling",
    "nn/test_convolution",
    "test_sparse",
    "test_sparse_csr",
    "test_modules",
    "test_foreach",
    "test_ops",
    "test_unary_ufuncs",
    "test_binary_ufuncs",
    "test_spectral_ops",
    "test_complex",
    "test_nestedtensor",
    "test_segment_reductions",
    "distributions/test_distributions",
    "test_dataloader",
    "test_multiprocessing",
    "test_linalg",
]
KINDS = ("passed", "skipped", "failed", "devtrace", "hardware", "environment", "torch")
PASSED = ("passed", "skipped")
_OWN = "super(self.__class__, self)"


class Failure(NamedTuple):
    file: str
    test: str
    words: str
    whose: str
    why: str


def tests_of_torch() -> Path:
    """Find PyTorch's tests, or fetch them."""
    if found := sorted(WORK.glob("*/test/test_torch.py")):
        return found[-1].parent
    WORK.mkdir(parents=True, exist_ok=True)
    fetched = subprocess.run(["apt-get", "source", "--download-only", "pytorch"], cwd=WORK, check=False)
    archives = sorted(WORK.glob("pytorch_*.orig.tar.*"))
    if fetched.returncode or not archives:
        sys.exit(
            f"suites-missing: got no tests of PyTorch; put its sources in {WORK}/pytorch (a deb-src line for apt does)"
        )
    subprocess.run(["tar", "xf", archives[-1]], cwd=WORK, check=True)
    tests = tests_of_torch()
    for file in tests.glob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        if _OWN in text:  # the class of a device inherits `setUp` in newer releases, and would call itself
            file.write_text(text.replace(_OWN, "super()"), encoding="utf-8")
    return tests


def run(tests: Path, file: str, device: str, seconds: float, first: Iterable[str] = ()) -> dict[str, dict[str, str]]:
    """Run a file for a while; return what became of each test."""
    out = WORK / f"{file.replace('/', '-')}.{device}.jsonl"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "suite_plugin", "-p", "no:cacheprovider",
               "--noconftest", f"{file}.py"]  # fmt: skip
    paths = os.pathsep.join(map(str, (SUITES, ROOT / "src", tests)))
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    env |= {
        "SUITE_DEVICE": device,
        "SUITE_OUT": str(out),
        "SUITE_SECONDS": str(seconds),
        "SUITE_FIRST": "\n".join(first),
    }
    try:
        with (WORK / "log").open("ab") as log:
            subprocess.run(command, cwd=tests, env=env, stdout=log, stderr=log, timeout=seconds + 300, check=False)
    except subprocess.TimeoutExpired:
        print(f"{file} on {device}: stopped, a test hangs")
    lines = out.read_text().splitlines() if out.exists() else []
    return {line["test"]: line for line in map(json.loads, lines)}


def judged(file: str, test: str, words: str, control: str) -> Failure:
    """Find whose a failure is."""
    rows = [line.split("\t") for line in (SUITES / "whose.tsv").read_text().splitlines() if not line.startswith("#")]
    text = f"cpu={control} {test} {words}"
    whose, why = next(((whose, why) for whose, why, pattern in rows if re.search(pattern, text)), ("devtrace", "open"))
    return Failure(file, test, " ".join(words.split())[:120], whose, why)


def main(arguments: list[str]) -> None:
    tests = tests_of_torch()
    minutes = next((float(each.partition("=")[2]) for each in arguments if each.startswith("minutes=")), MINUTES)
    files = [name for name in arguments if name != "all" and "=" not in name] or FILES
    seconds = 1e6 if "all" in arguments else minutes * 60 / len(files) / 1.6
    rows, failures = kept_rows(), kept_failures(files)
    for file in files:
        simulated = run(tests, file, "cuda", seconds)
        failed = {test: line["words"] for test, line in simulated.items() if line["outcome"] not in PASSED}
        control = run(tests, file, "cpu", seconds * 0.6, failed)
        own = [
            judged(file, test, words, control.get(test, {}).get("outcome", "not run")) for test, words in failed.items()
        ]
        failures += own
        count = Counter(line["outcome"] for line in simulated.values()) + Counter(each.whose for each in own)
        rows[file] = count
        print(file, dict(count), flush=True)
        write(rows, failures)


def kept_rows() -> dict[str, Counter[str]]:
    """Return what counts.tsv has of each file."""
    cells = [line.split("\t") for line in (SUITES / "counts.tsv").read_text().splitlines()[1:]]
    return {name: Counter(dict(zip(KINDS, map(int, counts), strict=True))) for name, *counts in cells if name in FILES}


def kept_failures(files: list[str]) -> list[Failure]:
    lines = (SUITES / "failing.tsv").read_text().splitlines()[1:]
    return [each for each in (Failure(*line.split("\t")) for line in lines) if each.file not in files]


def write(rows: dict[str, Counter[str]], failures: list[Failure]) -> None:
    """Write all files after each suite, so that what ran is there when the time that was left for it ends."""
    known = [(file, rows[file]) for file in FILES if file in rows]
    text = "".join("\t".join((file, *(str(count[kind]) for kind in KINDS))) + "\n" for file, count in known)
    (SUITES / "counts.tsv").write_text("\t".join(("# file", *KINDS)) + f"\n{text}")
    text = "".join("\t".join(each) + "\n" for each in sorted(failures))
    (SUITES / "failing.tsv").write_text(f"# file\ttest\twords\twhose\twhy\n{text}")
    write_sum(sum((count for _, count in known), Counter[str]()))


def write_sum(count: Counter[str]) -> None:
    """Put the sum between the marks of docs/suites.md."""
    lines = ["| passed | skipped | failed | of these devtrace's | hardware's | environment's | torch's |",
             "|" + "---:|" * len(KINDS), "| " + " | ".join(str(count[kind]) for kind in KINDS) + " |"]  # fmt: skip
    page = ROOT / "docs" / "suites.md"
    before, mark, rest = page.read_text().partition("<!-- table -->\n")
    after = rest.partition("<!-- end -->")[2]
    page.write_text(f"{before}{mark}\n{chr(10).join(lines)}\n\n<!-- end -->{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
