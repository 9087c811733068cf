from __future__ import annotations

from devtrace.report import palette


def test_every_device_has_a_shade_and_one_of_no_known_kind_too() -> None:
    for device in ("cpu", "cuda:0", "cuda:99", "mps", "xpu:1", "meta", "tpu:3", "", "cuda:x", "cuda:99999999999"):
        assert palette.shade(device).fill.startswith("#")


def test_two_devices_of_a_kind_differ_in_fill_hatch_and_letter() -> None:
    first, second = palette.shade("cuda:0"), palette.shade("cuda:1")
    assert [a != b for a, b in zip(first, second, strict=True)] == [True, False, True, True]


def test_lanes_are_ordered_by_kind_and_then_by_index() -> None:
    devices = ["cuda:10", "cuda:2", "weird", "meta", "cpu", "mps"]
    assert sorted(devices, key=palette.order) == ["cpu", "cuda:2", "cuda:10", "mps", "weird", "meta"]


def test_an_accelerator_of_any_name_is_drawn_as_none_of_the_others_are() -> None:
    shades = [palette.shade(device, theme) for theme in ("light", "dark") for device in ("accel:0", "accel:1")]
    others = {palette.shade(f"{kind}:0", theme).fill for kind in ("cpu", "cuda", "meta") for theme in ("light", "dark")}
    assert len({shade.fill for shade in shades} | others) == 4 + len(others)
    assert [shade.letter for shade in shades] == ["D0", "D1"] * 2
