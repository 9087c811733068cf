"""The trace: columns underneath, rows on demand; and its builder, the mutable half of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from devtrace.trace.columns import TABLES
from devtrace.trace.rows import Row
from devtrace.trace.tables import Lists, TraceData
from traces import empty_trace, head_trace, new_builder


def test_a_row_follows_its_references() -> None:
    op = head_trace().ops[-1]
    assert op.site is not None
    assert op.site.line == 6
    assert op.inputs[0].device == "cpu"
    assert op.inputs[0].shape == (2,)
    assert op.call is not None
    assert op.call.module.path == "model.out_head"
    assert op.call.parent is not None
    assert op.call.parent.module.path == "model"


def test_a_missing_reference_is_none() -> None:
    first = head_trace().ops[0]
    assert first.call is None
    assert first.module is None
    assert first.forward is None


def test_a_device_equals_its_name_and_knows_whether_it_is_simulated() -> None:
    cpu, cuda = head_trace().devices
    assert (cpu, cuda) == ("cpu", "cuda:0")
    assert (cpu.simulated, cuda.simulated) == (False, True)
    assert cuda.name == "cuda:0"


def test_a_tensor_without_a_site_of_its_own_was_born_at_its_producers_site() -> None:
    trace = head_trace()
    made_by_op, parameter = trace.ops[2].outputs[0], trace.ops[-1].inputs[0]
    assert made_by_op.site == trace.ops[2].site
    assert parameter.site is not None
    assert parameter.site.cell == 5


def test_a_site_in_a_file_has_no_cell() -> None:
    trace = head_trace()
    assert trace.sites[0].cell == 5
    assert str(trace.sites[0]) == "In[5] line 1"


def test_a_column_is_an_immutable_array_of_row_ids() -> None:
    column = head_trace().ops.column("device")
    assert isinstance(column, np.ndarray)
    assert column.tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 0


def test_tables_have_length_negative_indexes_slices_and_iteration() -> None:
    ops = head_trace().ops
    assert len(ops) == 4
    assert ops[-1].id == 3
    assert [op.name for op in ops[1:3]] == ["aten.t", "aten.mm"]
    assert [op.id for op in ops] == [0, 1, 2, 3]
    with pytest.raises(IndexError, match="ops has 4 rows, not 4"):
        ops[4]


def test_an_unknown_field_is_an_attribute_error_that_lists_the_fields() -> None:
    with pytest.raises(AttributeError, match=r"a row of ops has no field 'colour'; it has name, start"):
        _ = head_trace().ops[0].colour


@pytest.mark.parametrize("table", [name for name in TABLES if isinstance(vars(TraceData)[name].row, type)])
def test_the_typed_fields_of_a_row_are_the_columns_of_its_table(table: str) -> None:
    row: type[Row[Any]] = vars(TraceData)[table].row
    fields = set(row.__annotations__) | {
        name.rstrip("_") for name in vars(row) if isinstance(vars(row)[name], property)
    }
    derived = {"module"} if table == "ops" else set()
    assert fields - derived == {column.name for column in TABLES[table]}


def test_an_empty_trace_has_every_table() -> None:
    trace = empty_trace()
    assert all(len(trace.table(name)) == 0 for name in TABLES)
    assert repr(trace) == "<Trace: 0 ops on no device>"


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
