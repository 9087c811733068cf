from __future__ import annotations

import pytest

from devtrace import plain


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    assert plain.visible("a\u202eb\x00c\ud800d\u200be") == "a\\u202eb\\u0000c\\ud800d\\u200be"


def test_letters_of_every_script_stay_as_they_are() -> None:
    text = "héé שלום 你好 🔥 ✗ → × \t"
    assert plain.visible(text) == text


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    shown = plain.visible("x" * 1_048_576)
    assert shown == "x" * 200 + "… (1,048,576 characters)"


def test_a_text_of_many_lines_becomes_one() -> None:
    assert plain.line("a\n\t b  \r\n c") == "a b c"


def test_markup_is_text() -> None:
    assert plain.markup('<b onclick="x">&\'') == "&lt;b onclick=&quot;x&quot;&gt;&amp;&#x27;"


def test_what_every_function_returns_can_be_encoded() -> None:
    hostile = "".join(map(chr, range(0x10000)))
    assert plain.markup(hostile, 70_000).encode("utf-8")


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
    assert plain.size(count) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0 ns"), (850, "850 ns"), (12_400, "12.4 µs"), (999_600, "1 ms"), (3e9, "3 s"), (125e9, "2 min 05 s")],
)
def test_durations_have_a_unit_and_three_digits_at_most(nanoseconds: float, text: str) -> None:
    assert plain.time(nanoseconds) == text


def test_things_are_counted() -> None:
    assert [plain.counted(n, "copy", "copies") for n in (0, 1, 1234)] == ["0 copies", "1 copy", "1,234 copies"]
