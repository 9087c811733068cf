from __future__ import annotations

import pytest

from devtrace.words import text_format


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    assert text_format.escape_invisible("a\u202eb\x00c\ud800d\u200be") == "a\\u202eb\\u0000c\\ud800d\\u200be"


def test_letters_of_every_script_stay_as_they_are() -> None:
    text = "héé שלום 你好 🔥 ✗ → × \t"
    assert text_format.escape_invisible(text) == text


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    shown = text_format.escape_invisible("x" * 1_048_576)
    assert shown == "x" * 200 + "… (1,048,576 characters)"


def test_a_text_of_many_lines_becomes_one() -> None:
    assert text_format.safe_line("a\n\t b  \r\n c") == "a b c"


def test_markup_is_text() -> None:
    assert text_format.escape_markup('<b onclick="x">&\'') == "&lt;b onclick=&quot;x&quot;&gt;&amp;&#x27;"


def test_what_every_function_returns_can_be_encoded() -> None:
    hostile = "".join(map(chr, range(0x10000)))
    assert text_format.escape_markup(hostile, 70_000).encode("utf-8")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (98_304, "98.3 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (10**15, "1000 TB"),
    ],
)
def test_bytes_have_a_unit(count: int, text: str) -> None:
    assert text_format.format_bytes(count) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0 ns"), (850, "850 ns"), (12_400, "12.4 µs"), (999_600, "1 ms"), (3e9, "3 s"), (125e9, "2 min 05 s")],
)
def test_durations_have_a_unit_and_three_digits_at_most(nanoseconds: float, text: str) -> None:
    assert text_format.format_time(nanoseconds) == text


def test_things_are_counted() -> None:
    assert [text_format.pluralize(n, "copy", "copies") for n in (0, 1, 1234)] == ["0 copies", "1 copy", "1,234 copies"]
