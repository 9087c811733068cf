"""The timeline under the hand: wheel, drag, two fingers, keys, search, and the card of what is under the pointer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from playwright.sync_api import Page, expect

import make_traces
from e2e.browser import Chromium
from e2e.views import Views, point_at

pytestmark = pytest.mark.e2e

OPS = 100
SPANS = tuple((at * 1000, 1000) for at in range(OPS))


class Plot:
    """A timeline of ops in one lane, by default each as long as the next: which is at a place says what is in view."""

    def __init__(self, page: Page, spans: Sequence[tuple[int, int]] = SPANS) -> None:
        Views(page).mount(make_traces.timed(*spans))
        self.page = page
        self.node = page.get_by_role("application")
        box = self.node.bounding_box()
        assert box
        self.left, self.right = box["x"] + 128, box["x"] + box["width"]
        self.y = box["y"] + box["height"] - 24

    def at(self, share: float) -> float:
        return self.left + share * (self.right - self.left)

    def op(self, share: float) -> int:
        """Return the op that the card names at a share of the width, once that has been painted."""
        point_at(self.page, self.at(share), self.y - 300)
        point_at(self.page, self.at(share), self.y)
        title = self.page.locator(".dt-card-title")
        expect(title).to_be_visible()
        return int((title.text_content() or "").removeprefix("aten.op"))

    def zoom_in(self, share: float, by: int) -> None:
        """Turn the wheel with Ctrl at a share of the width."""
        self.page.mouse.move(self.at(share), self.y)
        self.page.keyboard.down("Control")
        for _ in range(4):
            self.page.mouse.wheel(0, -by)
        self.page.keyboard.up("Control")

    @property
    def ends(self) -> tuple[int, int]:
        return self.op(0.05), self.op(0.95)


@pytest.fixture
def plot(page: Page) -> Plot:
    return Plot(page)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("key", "sees"),
    [
        ("+", lambda before, after: before[0] < after[0] and after[1] < before[1]),
        ("ArrowRight", lambda before, after: before[0] < after[0] and before[1] < after[1]),
        ("ArrowLeft", lambda before, after: after[0] < before[0] and after[1] < before[1]),
        ("-", lambda before, after: after[0] < before[0] and before[1] < after[1]),
        ("Home", lambda _, after: after[0] < 5 and after[1] > 94),
    ],
)
def test_keys_zoom_and_pan(plot: Plot, key: str, sees: object) -> None:
    plot.node.focus()
    plot.page.keyboard.press("+")
    plot.page.keyboard.press("+")
    before = plot.ends
    plot.page.keyboard.press(key)
    assert callable(sees)
    assert sees(before, plot.ends)


def test_the_wheel_with_ctrl_zooms_round_the_pointer_and_sideways_pans(plot: Plot) -> None:
    under = plot.op(0.3)
    plot.zoom_in(0.3, by=100)
    zoomed = plot.ends
    assert zoomed[1] - zoomed[0] < OPS / 2
    assert abs(plot.op(0.3) - under) <= 1
    plot.page.mouse.wheel(200, 0)
    assert plot.op(0.3) > under


def test_dragging_takes_the_ops_along(plot: Plot) -> None:
    plot.node.focus()
    plot.page.keyboard.press("+")
    grabbed = plot.op(0.6)
    plot.page.mouse.down()
    plot.page.mouse.move(plot.at(0.4), plot.y, steps=5)
    plot.page.mouse.up()
    assert abs(plot.op(0.4) - grabbed) <= 1


def test_the_small_picture_of_the_whole_takes_one_there(plot: Plot) -> None:
    plot.node.focus()
    for _ in range(3):
        plot.page.keyboard.press("+")
    box = plot.node.bounding_box()
    assert box
    plot.page.mouse.click(plot.at(0.8), box["y"] + 10)
    assert 70 < plot.op(0.5) < 90


def test_a_double_click_zooms_to_the_op(plot: Plot) -> None:
    op = plot.op(0.7)
    plot.page.mouse.dblclick(plot.at(0.7), plot.y)
    first, last = plot.ends
    assert op - 8 <= first < op < last <= op + 8


@pytest.fixture
def touched(chromium: Chromium) -> Iterator[Page]:
    with chromium.context(has_touch=True) as context:
        yield context.new_page()


def test_two_fingers_pinch(touched: Page) -> None:
    plot = Plot(touched)
    under = plot.op(0.5)
    client = touched.context.new_cdp_session(touched)

    def touch(kind: str, apart: float) -> None:
        fingers = [{"x": plot.at(0.5 + side * apart), "y": plot.y, "id": at} for at, side in enumerate((-1, 1))]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers if kind != "touchEnd" else []})

    touch("touchStart", 0.1)
    for apart in (0.15, 0.2, 0.3):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    first, last = plot.ends
    assert 20 < last - first < 45
    assert abs(plot.op(0.5) - under) <= 2


def test_the_card_shows_op_shapes_devices_module_and_line(page: Page) -> None:
    views = Views(page)
    views.mount(make_traces.failing())
    page.locator('[data-devtrace="finding"]').click()
    plot = page.get_by_role("application")
    plot.focus()
    page.keyboard.press("Enter")
    box = plot.bounding_box()
    assert box
    # The last op of the trace: it stands at the right of what is in view, in the lane of its device.
    for x in range(int(box["width"]) - 40, int(box["width"]) // 2, -6):
        point_at(page, box["x"] + x, box["y"] + box["height"] - 24)
        if page.locator(".dt-card-title:has-text('addmm')").is_visible():
            break
    shown = ("aten.addmm", "cuda:0", "on cpu", "[8, 768]", "model.out_head", "In[7] line 6", "Expected all tensors")
    for text in shown:
        expect(page.locator(".dt-card")).to_contain_text(text)


def test_a_search_shows_how_many_ops_it_lights_up_and_lets_the_others_fade(plot: Plot) -> None:
    page = plot.page
    picture = "() => document.querySelector('.dt-canvas').toDataURL()"
    before = page.evaluate(picture)
    page.get_by_role("searchbox", name="Highlight ops").fill("op7")
    expect(page.locator(".dt-found").first).to_have_text("11 ops")
    page.wait_for_function(f"before => ({picture})() !== before", arg=before)
    page.get_by_role("searchbox", name="Highlight ops").fill("")
    page.wait_for_function(f"before => ({picture})() === before", arg=before)


def test_each_op_as_wide_as_the_next_where_time_hides_some(page: Page) -> None:
    plot = Plot(page, [(0, 10), (10, 1_000_000), (1_000_010, 10)])
    steps = page.get_by_role("button", name="Equal steps")
    steps.click()
    expect(steps).to_have_attribute("aria-pressed", "true")
    assert [plot.op(share) for share in (0.2, 0.5, 0.8)] == [0, 1, 2]


def test_the_card_goes_with_the_op_that_the_keys_pick(plot: Plot) -> None:
    keyboard, title = plot.page.keyboard, plot.page.locator(".dt-card-title")
    plot.op(0.5)
    plot.node.focus()
    keyboard.press("ArrowRight")
    expect(title).to_be_hidden()  # nothing is picked, and what was under the pointer has moved away
    keyboard.press("Shift+ArrowRight")
    expect(title).to_have_text("aten.op0")
    keyboard.press("Shift+ArrowRight")
    expect(title).to_have_text("aten.op1")
    card = plot.page.locator(".dt-card")
    before = card.bounding_box()
    keyboard.press("+")
    plot.page.wait_for_function(
        "before => document.querySelector('.dt-card').getBoundingClientRect().x !== before", arg=before and before["x"]
    )
    keyboard.press("Escape")
    expect(title).to_be_hidden()
    keyboard.press("Shift+ArrowRight")
    expect(title).to_be_visible()
    plot.node.blur()
    expect(title).to_be_hidden()
