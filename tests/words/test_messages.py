"""Every message of devtrace, by its slug: this file provokes each, and the docs say what to do."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from importlib.metadata import PackageNotFoundError
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch

import devtrace
import devtrace.recording
import documents
from devtrace import features
from devtrace.cli.main import main
from devtrace.diagnosis.findings import Edit
from devtrace.fixing.patch import write_all
from devtrace.fixing.source_text import SourceText
from devtrace.notebook.cells import Tracing
from devtrace.notebook.panel.trace_summaries import find
from devtrace.runtime import requirements, torch_names
from devtrace.runtime.requirements import versions
from devtrace.trace.format import encode
from devtrace.words import errors, language
from devtrace.words.catalogue import templates
from folders import ROOT
from samples import training
from sentences import parameters
from shells import new_shell
from trees import nodes

BEFORE = SourceText("a.py", b"x = 1\n")
CLASSES = {name for name, value in vars(errors).items() if isinstance(value, type)}


def raised(call: Callable[[], object]) -> str:
    with pytest.raises(devtrace.DevtraceError) as caught:
        call()
    return str(caught.value)


def typed(*cells: str) -> str:
    """Return what cells print after `%load_ext devtrace`."""
    with new_shell("%load_ext devtrace") as shell:
        return "\n".join(shell.run(cell).text for cell in cells)


def called(*arguments: str) -> str:
    """Return what `devtrace ARGUMENT ...` prints on stderr."""
    with redirect_stderr(StringIO()) as printed:
        assert main(arguments) == 2
    return printed.getvalue()


OLD = SourceText("a.py", b"x = 1\n")


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def too_large() -> object:
    os.truncate(written("huge.devtrace", ""), (1 << 30) + 1)
    return devtrace.load("huge.devtrace")


def two_of_a_rank() -> object:
    trace = encode(training(1))
    trace["threads"]["rank"] = [3]
    return devtrace.load(*(written(name, json.dumps(trace)) for name in ("a.devtrace", "b.devtrace")))


def without_torch(monkeypatch: pytest.MonkeyPatch, found: str | None) -> str:
    def version(name: str) -> str:
        if found is None:
            raise PackageNotFoundError(name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(requirements, "version", version)
        return raised(requirements.need_torch)


def real_cuda(monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        return raised(lambda: devtrace.simulate("cuda:1").start())


def changed(call: Callable[[], object]) -> Callable[[pytest.MonkeyPatch], str]:
    """Provoke what is raised on a torch in which a name that devtrace needs has changed."""

    def provoke(monkeypatch: pytest.MonkeyPatch) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(torch_names, "fault_of", lambda part: "torch._C is <class 'str'>")
            return raised(call)

    return provoke


def simulated(call: Callable[[torch.Tensor], object]) -> Callable[[], object]:
    def run() -> object:
        with devtrace.simulate("cuda:1"):
            return call(torch.ones(3, device="cuda:0"))

    return run


def used_after_its_simulation() -> object:
    with devtrace.simulate("cuda:1"):
        tensor = torch.ones(3, device="cuda:0")
    return tensor + 1


def read_within_its_block() -> object:
    with devtrace.record() as recording:
        return recording.report


def in_a_block(call: Callable[[torch.Tensor], object], **counts: Any) -> Callable[[], object]:
    @simulated
    def run(x: torch.Tensor) -> None:
        with devtrace.expect("cuda:0", **counts):
            call(x)

    return run


def without_features(call: Callable[[], object]) -> Callable[[pytest.MonkeyPatch], str]:
    def provoke(monkeypatch: pytest.MonkeyPatch) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(features, "offers", lambda _: {})
            return raised(call)

    return provoke


PROVOKED: dict[str, Callable[[pytest.MonkeyPatch], str]] = {
    "command-argument": lambda _: typed("%devtrace on now"),
    "computed-elsewhere": lambda _: raised(in_a_block(lambda x: torch.ones(3) + 1)),
    "copies-unexpected": lambda _: raised(in_a_block(lambda x: x.cpu(), copies=0)),
    "expect-counts": lambda _: raised(lambda: devtrace.expect(torch.ones(1), device="cpu", syncs=0)),  # type: ignore[call-overload]
    "expect-device": lambda _: raised(lambda: devtrace.expect(torch.ones(1), device="")),
    "expect-peak": lambda _: raised(simulated(lambda x: devtrace.expect(peak="20GB").__enter__())),
    "expect-value": lambda _: typed("%%devtrace --expect gpu\n1"),
    "feature-absent": lambda _: raised(lambda: features.need("function", "nothing")),
    "feature-point": lambda _: raised(lambda: features.only_rules({"command": {}})),
    "folder-missing": lambda _: typed("%%devtrace --save missing/run.devtrace\n1"),
    "figure-unknown": lambda _: raised(lambda: devtrace.diagnose(training(1)).figure("pie")),
    "fail-on": lambda _: called("run", "--fail-on", "note", "a.py"),
    "file-unreadable": lambda _: called("view", "missing.devtrace"),
    "fix-no-run": lambda _: called("fix", written("a.py", "pass")),
    "fix-not-written": lambda _: raised(lambda: write_all({"a.py": OLD}, {"a.py": OLD})),
    "fix-rounds": lambda _: called("fix", "--rounds", "none", "a.py"),
    "fix-unfit": lambda _: raised(lambda: OLD.edited([Edit("a.py", None, 1, "x = 2", "x = 3")])),
    "flag-value": lambda _: typed("%%devtrace --save\n1"),
    "language": lambda _: typed("%devtrace language fr"),
    "case-missing": lambda _: raised(lambda: training(1).save("a.devtrace", case=True)),
    "load-nothing": lambda _: raised(devtrace.load),
    "magic-line": lambda _: typed("1\n%%devtrace\n2"),
    "budget-value": lambda _: typed("%%devtrace --budget many\n1"),
    "max-ops": lambda _: typed("%%devtrace --max-ops many\n1"),
    "nested-trace": lambda _: typed("%%devtrace\nget_ipython().run_line_magic('devtrace', 'simulate cuda:1')"),
    "no-trace": lambda _: typed("%devtrace report"),
    "not-written": lambda _: typed("%%devtrace\nimport torch\ntorch.ones(3)", "%devtrace save missing/run.devtrace"),
    "open-quote": lambda _: typed('%%devtrace "a\n1'),
    "program-missing": lambda _: called("run"),
    "rank-twice": lambda _: raised(two_of_a_rank),
    "recording-not-ended": lambda _: raised(read_within_its_block),
    "untraced-flag": lambda _: called("run", "--untraced", "--html", "page.html", written("script.py", "")),
    "nothing-to-explain": lambda _: typed("%devtrace explain"),
    "script-missing": lambda _: called("run", "missing.py"),
    "simulate-absent": without_features(lambda: devtrace.simulate("cuda:1")),
    "simulate-memory": lambda _: raised(lambda: devtrace.simulate("cuda:1,24")),
    "simulate-devices": lambda _: raised(lambda: devtrace.simulate("tpu:9")),
    "simulate-ended": lambda _: raised(used_after_its_simulation),
    "simulate-nested": lambda _: raised(simulated(lambda x: devtrace.simulate("cuda:1").start())),
    "simulate-real-cuda": real_cuda,
    "simulate-limit": lambda _: raised(simulated(lambda _x: torch.cuda.MemPool())),
    "simulate-torch": changed(lambda: devtrace.simulate("cuda:1").start()),
    "peak-unexpected": lambda _: raised(in_a_block(lambda x: x.repeat(999), peak="cuda:0 <= 1KB")),
    "syncs-unexpected": lambda _: raised(in_a_block(lambda x: x[0].item(), syncs=0)),
    "tensors-elsewhere": lambda _: raised(lambda: devtrace.expect(torch.ones(1), device="cuda:0")),
    "torch-missing": lambda monkeypatch: without_torch(monkeypatch, None),
    "torch-too-old": lambda monkeypatch: without_torch(monkeypatch, "2.9.1"),
    "torch-unfit": changed(lambda: importlib.reload(devtrace.recording)),
    "trace-damaged": lambda _: raised(lambda: devtrace.load(written("a.devtrace", '{"format": "devtrace"}'))),
    "trace-foreign": lambda _: raised(lambda: devtrace.load(written("a.devtrace", "[]"))),
    "trace-gone": lambda _: raised(lambda: find(Tracing({}).history, 1)),
    "trace-newer": lambda _: raised(
        lambda: devtrace.load(written("a.devtrace", json.dumps(encode(training(1)) | {"version": 99})))
    ),
    "trace-too-large": lambda _: raised(too_large),
    "two-names": lambda _: typed("%%devtrace a b\n1"),
    "wrong-argument": lambda _: raised(lambda: devtrace.diagnose(torch.nn.Linear(2, 2))),  # type: ignore[arg-type]
    "unknown-command": lambda _: typed("%devtrace bogus"),
    "unknown-flag": lambda _: typed("%%devtrace --bogus\n1"),
}


def slugs_of(path: Path) -> set[str]:
    """Return the slugs that a file raises.

    A slug is what `UsageError.of` and its kin are given, up to the variant.
    """
    return {name.partition(".")[0] for name, _ in named_errors(path)}


def named_errors(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each name that an error of a file is made by, and the names of its values."""
    assigned = [node for node in nodes(path) if isinstance(node, ast.Assign)]
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "expect_kind":
            given = (each.value for each in node.keywords)
            yield from ((str(each.value), {"call", "kind"}) for each in given if isinstance(each, ast.Constant))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "of"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in CLASSES
        ):
            name = node.args[0]
            if isinstance(name, ast.Name):
                above = [
                    node for node in assigned if node.lineno < name.lineno and ast.unparse(node.targets[0]) == name.id
                ]
                if not above:  # a parameter
                    continue
                name = above[-1].value
            for choice in choices(name):
                names = {keyword.arg for keyword in node.keywords if keyword.arg}
                yield choice, names | (set(versions()) if "**versions()" in ast.unparse(node) else set())


def choices(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from choices(node.body)
        yield from choices(node.orelse)
    else:
        yield ast.unparse(node).strip("'\"")


def test_each_message_of_the_sources_is_provoked_here() -> None:
    slugs = {slug for path in (ROOT / "src" / "devtrace").rglob("*.py") for slug in slugs_of(path)}
    assert len(slugs) > 30
    assert slugs == set(PROVOKED)


@pytest.mark.parametrize("slug", PROVOKED)
def test_a_message_begins_with_its_slug(slug: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert re.search(rf"\b{slug}: got .+; .+; .+\.", PROVOKED[slug](monkeypatch))
    monkeypatch.setattr(language.CHOICE, "user", "zh")
    assert re.search(rf"\b{slug}：.+；.+；.+。", PROVOKED[slug](monkeypatch))


def test_an_error_gets_exactly_the_values_that_its_texts_take() -> None:
    wrong = []
    for path in (ROOT / "src" / "devtrace").rglob("*.py"):
        for name, values in named_errors(path):
            slug = name.partition(".")[0]
            found = templates("en")
            texts = [found.get(f"{name}.{part}") or found[f"{slug}.{part}"] for part in ("got", "expected", "do")]
            taken = set().union(*map(parameters, texts))
            others = [key for key in found if key.startswith(f"{slug}.")]
            if not taken <= values or not values <= set().union(*(parameters(found[key]) for key in others)):
                wrong.append(f"{path.name}: {name} takes {taken}, got {values}")
    assert wrong == []


@pytest.mark.parametrize("slug", PROVOKED)
def test_the_docs_explain_what_to_do_about_a_message(slug: str) -> None:
    assert re.search(rf"^\| [^|]*`{slug}`[^|]* \| \S.* \|$", documents.ALL, re.M)
