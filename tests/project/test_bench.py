"""`make bench` fails where a ratio became a fifth worse than the recorded one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import HERE, bench, ratios, worse

TABLES = """
| step | steps | ms | × plain | budget |
|---|---:|---:|---:|---:|
| small | 2,000 | 7.1 | 1.06 | 1.1 |
| small | 10,000 | 7.2 | 1.30 | 1.1 |

| recording | measured |
|---|---:|
| small step, × empty mode | 1.42 |
""".splitlines(keepends=True)


def test_a_number_is_known_by_the_cells_before_it_and_its_column() -> None:
    found = dict(ratios(TABLES))
    assert found["small | 2,000 -> × plain"] == 1.06
    assert found["small | 10,000 -> × plain"] == 1.30
    assert found["small step, × empty mode -> measured"] == 1.42


@pytest.mark.parametrize(
    ("recorded", "complaints"),
    [
        ({"small step, × empty mode -> measured": 1.2}, []),
        ({"small | 2,000 -> × plain": 1.06}, []),
        (
            {"small step, × empty mode -> measured": 1.18},
            ["small step, × empty mode -> measured is 1.42, recorded are 1.18: over 1.2 times as much"],
        ),
        ({"large step -> measured": 1.0}, ["no table has large step -> measured"]),
    ],
)
def test_a_fifth_worse_and_a_missing_row_are_complaints(recorded: dict[str, float], complaints: list[str]) -> None:
    assert worse(TABLES, recorded) == complaints


def test_a_bench_fails_by_itself_and_by_its_ratios(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "bench_x.py"
    script.write_text(f"print({''.join(TABLES)!r})")
    name = "small step, × empty mode -> measured"
    assert (bench(script, {}), bench(script, {name: 1.4}), bench(script, {name: 1.0})) == (0, 0, 1)
    assert capfd.readouterr().out.endswith(f"{name} is 1.42, recorded are 1.00: over 1.2 times as much\n")
    script.write_text("raise SystemExit(1)")
    assert bench(script, {}) == 1


def test_each_recorded_ratio_is_of_a_bench_that_prints_its_row() -> None:
    recorded = json.loads((HERE / "ratios.json").read_text(encoding="utf-8"))
    assert {name: (HERE / f"{name}.py").exists() for name in recorded} == dict.fromkeys(recorded, True)
