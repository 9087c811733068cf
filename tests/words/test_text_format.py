from __future__ import annotations

import json
from typing import Final

import pytest

from devtrace.words import text_format
from goldens import assert_golden


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    assert text_format.escape_invisible("a\u202eb\x00c\ud800d\u200be") == "a\\u202eb\\u0000c\\ud800d\\u200be"


def test_letters_of_every_script_stay_as_they_are() -> None:
    text = "héé שלום 你好 🔥 ✗ → × \t"
    assert text_format.escape_invisible(text) == text


def test_a_long_text_is_cut_and_shows_how_long_it_was() -> None:
    shown = text_format.escape_invisible("x" * 1_048_576)
    assert shown == "x" * 200 + "… (1,048,576 characters)"


def test_a_text_of_many_lines_becomes_one() -> None:
    assert text_format.safe_line("a\n\t b  \r\n c") == "a b c"


@pytest.mark.parametrize("file", ["/project/train.py", "C:\\project\\train.py", "train.py"])
def test_a_file_goes_by_its_last_part_on_every_system(file: str) -> None:
    assert text_format.file_label(file) == "train.py"


def test_markup_is_text() -> None:
    assert text_format.escape_markup('<b onclick="x">&\'') == "&lt;b onclick=&quot;x&quot;&gt;&amp;&#x27;"


def test_what_every_function_returns_can_be_encoded() -> None:
    hostile = "".join(map(chr, range(0x10000)))
    assert text_format.escape_markup(hostile, 70_000).encode("utf-8")


BYTES: Final = (
    0, 1, 512, 999, 1000, 1049, 1050, 1250, 1350, 1500, 9999, 12_250, 98_304, 99_949, 99_950, 100_000, 500_500, 999_499,
    999_500, 999_600, 1_000_000, 1_048_576, 38_597_376, 999_499_999, 999_500_000, 2**30, 10**12, 1_500_000_000_000,
    999_500_000_000_000, 10**15, 2**53,
)  # fmt: skip
TIMES: Final = (
    0, 0.5, 1, 12.25, 850, 999, 999.4, 999.5, 1000, 1005, 1234, 1235, 1250, 12_250, 12_350, 12_400, 99_950, 123_500,
    124_500, 999_499, 999_500, 999_600, 10**6, 1_250_000, 12_400_000, 999_499_999, 999_500_000, 10**9, 1_499_999_999,
    3 * 10**9, 60 * 10**9, 119_499_999_999, 119_500_000_000, 120 * 10**9, 125 * 10**9, 125_999_999_999, 3599 * 10**9,
    3600 * 10**9, 7_199_999_999_999, 7200 * 10**9, 12_000 * 10**9, 86_400 * 10**9, 93_900 * 10**9,
)  # fmt: skip
COUNTS: Final = (
    (0, "copy", "copies"), (1, "copy", "copies"), (2, "copy", "copies"), (1234, "copy", "copies"), (1, "op"), (0, "op"),
    (999, "op"), (1000, "op"), (1_234_567, "op"),
)  # fmt: skip
OPS: Final = (
    "aten.addmm.default", "aten.add.Tensor", "aten.add_.Scalar", "aten.relu", "aten._to_copy.default", "mylib.fused",
    "prims.convert_element_type.default", "torchvision.nms.default", "addmm", "", "aten.", "a..b", "all_reduce", "x.",
)  # fmt: skip


def test_numbers_and_op_names_read_the_same_in_both_languages() -> None:
    """TypeScript tests compare `layout/units.ts` and the timeline's op names with the same golden."""
    tables = {
        "bytes": [_row(count, text_format.format_bytes(count)) for count in BYTES],
        "times": [_row(nanoseconds, text_format.format_time(nanoseconds)) for nanoseconds in TIMES],
        "counts": [_row(*counted, text_format.pluralize(*counted)) for counted in COUNTS],
        "ops": [_row(name, text_format.short_op_name(name)) for name in OPS],
    }
    golden = ",\n".join(f'"{name}": [\n' + ",\n".join(rows) + "\n]" for name, rows in tables.items())
    assert_golden("numbers.json", f"{{\n{golden}\n}}\n")


def _row(*values: object) -> str:
    return f"  {json.dumps(values, ensure_ascii=False)}"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (999_500, "1.0 MB"), (10**15, "1000 TB")]
)
def test_bytes_have_a_unit(count: int, text: str) -> None:
    assert text_format.format_bytes(count) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (850, "850 ns"),
        (12_400, "12.4 µs"),
        (999_600, "1 ms"),
        (3e9, "3 s"),
        (125e9, "2 min 05 s"),
        (12e12, "3 h 20 min"),
    ],
)
def test_durations_have_a_unit_and_three_digits_at_most(nanoseconds: float, text: str) -> None:
    assert text_format.format_time(nanoseconds) == text


def test_things_are_counted() -> None:
    assert [text_format.pluralize(n, "copy", "copies") for n in (0, 1, 1234)] == ["0 copies", "1 copy", "1,234 copies"]
