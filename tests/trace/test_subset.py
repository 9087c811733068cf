"""A trace with fewer ops, or shared without its source: it keeps the format's rules and what is left says the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_dump import dump

import devtrace
from devtrace.api.results import diagnose
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.checks import broken_rule
from devtrace.trace.subset import LONGEST_TEXT, around, cut, renumbered, without_source
from devtrace.trace.tables import TraceData
from samples import facts_of, training
from traces import head_trace, odd_trace
from warm import Warm

TRACES = [training(4), head_trace(), odd_trace()]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(TRACES))
def test_whatever_is_cut_the_rest_keeps_the_rules_and_is_unchanged(data: st.DataObject, trace: TraceData) -> None:
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(trace.ops), max_size=len(trace.ops))), dtype=bool)
    less = cut(trace, keep)
    assert broken_rule(less) is None
    assert [facts_of(op) for op in less.ops] == [facts_of(trace.ops[id]) for id in np.flatnonzero(keep)]
    assert less.truncated == trace.truncated + int((~keep).sum())
    assert {copy.op.name for copy in less.copies} <= {copy.op.name for copy in trace.copies}


@pytest.mark.parametrize("trace", TRACES)
def test_nothing_cut_is_the_same_trace(trace: TraceData) -> None:
    less = cut(trace, np.ones(len(trace.ops), dtype=bool))
    for name in ("ops", "calls", "copies", "modules", "ledger", "errors"):
        assert len(less.table(name)) == len(trace.table(name))
    assert dump(less).count("\n") <= dump(trace).count("\n")


def test_what_is_kept_is_about_as_many_ops_as_asked_for_and_has_every_finding() -> None:
    trace = training(200)
    keep = around(trace, 300)
    assert 250 <= keep.sum() <= 350
    less = cut(trace, keep)
    assert less.findings is not None
    assert less.ops[less.findings[0]["op"]].duration == -1
    assert [error.op.duration for error in less.errors] == [-1]


def test_a_very_long_text_is_shortened() -> None:
    trace = training(1)
    long = replace(trace, strings=(*trace.strings, "x" * 10**6))
    assert max(map(len, cut(long, np.ones(len(trace.ops), dtype=bool)).strings)) < LONGEST_TEXT + 100


def test_happenings_of_before_the_trace_stay_in_their_order() -> None:
    trace = training(4)
    columns = dict(trace.values["modules"])
    columns["op"] = np.full(len(trace.modules), -len(trace.ops) - 5, dtype=np.int32)
    earlier = replace(trace, values={**trace.values, "modules": columns})
    less = cut(earlier, np.arange(len(trace.ops)) < 1)
    assert set(less.modules.ints("op").tolist()) == {-len(trace.ops) - 5}


def test_a_finding_keeps_its_ops_and_lines_under_their_new_numbers_in_all_its_parts() -> None:
    finding = {
        "rule": "out-of-memory",
        "op": 2,
        "site": 1,
        "ops": [0, 2],
        "culprit": {"born": 0, "site": -1},
        "holders": [{"name": "losses", "born": 1, "site": 0}],
    }
    found = renumbered(finding, np.array([-1, 5, 7, -1]), np.array([3, 4, -1]))
    assert found == {
        "rule": "out-of-memory",
        "op": 7,
        "site": 4,
        "ops": [7],
        "culprit": {"born": 3, "site": -1},
        "holders": [{"name": "losses", "born": 4, "site": 3}],
    }


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
