"""A trace that is shared without its source: it loads, it reports, and none of its files has a line of code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import devtrace
from devtrace.api.results import diagnose
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.subset import without_source
from warm import Warm

PROGRAM = """import torch
secret_weight = torch.ones(3, 3)
public = torch.zeros(3, device="cuda:0")  # a comment of my own
public @ secret_weight
"""


def test_a_trace_without_source_has_no_line_of_it_and_still_has_all_lines_numbers(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    warm.devtrace(tmp_path, "run", "--simulate", "cuda:1", "--save", "whole.devtrace", "mine.py")
    whole = devtrace.load(tmp_path / "whole.devtrace")
    assert "a comment of my own" in (tmp_path / "whole.devtrace").read_text() or len(whole.sources)
    whole.save(tmp_path / "shared.devtrace", source=False)
    text = (tmp_path / "shared.devtrace").read_text()
    for line in PROGRAM.splitlines()[1:]:
        assert line.partition("  #")[0] not in text
    assert "a comment of my own" not in text
    shared = devtrace.load(tmp_path / "shared.devtrace")
    assert len(shared.sources) == 0
    [found, *_] = diagnose(shared).findings
    [before, *_] = diagnose(whole).findings
    assert (found.rule, found.message, found.edits) == (before.rule, before.message, ())
    assert found.site is not None
    assert (found.site.line, found.site.text) == (4, "")


def test_advice_keeps_its_words_where_the_code_of_an_edit_is_left_out() -> None:
    edit = {"after": "    mask = torch.ones(\n        3, device=x.device\n    )\n"}
    quoted = {"help": "move it where it is made (once): `mask = torch.ones( 3, device=x.device )`", "edits": [edit]}
    whole = {"help": edit["after"].strip(), "edits": [edit]}
    bare = without_source(replace(TraceBuilder().build(), findings=(quoted, whole))).findings
    assert bare is not None
    assert [each["help"] for each in bare] == ["move it where it is made (once): `...`", "..."]
    assert [each["edits"] for each in bare] == [[], []]
