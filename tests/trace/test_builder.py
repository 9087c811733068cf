"""The builder: the mutable half of the trace."""

from __future__ import annotations

import numpy as np
import pytest

from devtrace.trace.tables import Lists
from traces import new_builder


def test_text_devices_and_shapes_are_stored_once() -> None:
    b = new_builder()
    assert b.device("cpu") == b.device("cpu") == 0
    assert b.shape((2, 3)) == b.shape([2, 3]) == 0
    assert b.text("a") == b.text("a")
    assert len(b.build().devices) == 1


def test_what_is_not_given_is_none_or_empty() -> None:
    b = new_builder()
    b.append("ops", name="aten.add")
    op = b.build().ops[0]
    assert (op.site, op.kind, op.inputs) == (None, "", ())


def test_a_row_can_be_changed_until_the_trace_is_built() -> None:
    b = new_builder()
    call = b.append("calls", begin=0, end=0)
    b.set("calls", call, end=7)
    assert b.get("calls", call, "end") == 7
    assert b.build().calls[0].end == 7


def test_an_unknown_column_is_refused_with_the_columns_there_are() -> None:
    with pytest.raises(TypeError, match="threads has no column colour; it has name, rank"):
        new_builder().append("threads", name="x", colour="red")


def test_a_table_can_be_handed_over_as_whole_columns() -> None:
    b = new_builder()
    b.columns("shapes", {"dims": Lists(np.array([0, 2, 2]), np.array([4, 5], np.int32))})
    assert b.count("shapes") == 2
    assert list(b.build().shapes) == [(4, 5), ()]
    with pytest.raises(TypeError, match=r"columns of threads: got \['name'\], expected \['name', 'rank'\]"):
        b.columns("threads", {"name": np.array([], np.int32)})
