"""The kernel's side of the sidebar, talked to as a front end talks to it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest
import torch

from devtrace.api.options import Options
from devtrace.fixing.notebooks.state import first_state
from devtrace.notebook.cells import Cell, Tracing
from devtrace.notebook.inventory.inventory import drain, listing
from devtrace.notebook.panel.feed import PERIOD
from devtrace.notebook.panel.messages import SPEC, refusal
from devtrace.notebook.panel.panel import Panel
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.format import decode, encode
from devtrace.words import language
from goldens import assert_golden

Message = dict[str, Any]


class FrontEnd:
    """One sidebar: checks all that it is sent, and waits for what it wants to see."""

    def __init__(self, panel: Panel, *, visible: bool = True, greet: bool = True) -> None:
        self.got: list[Message] = []
        self._arrived = threading.Condition()
        self._last = 0
        self._from = 0
        self.send = panel.connect(self._take)
        self.panel = panel
        if greet:
            self.welcome = self.ask("hello", protocol=SPEC["protocol"], visible=visible)

    def _take(self, message: Message) -> None:
        with self._arrived:
            self.got.append(message)
            self._arrived.notify_all()

    def ask(self, kind: str, **fields: Any) -> Message:
        """Send a message and wait for its answer."""
        self._last += 1
        self.send({"kind": kind, "request": self._last, **fields})
        return self.wait(lambda message: message.get("request") == self._last)

    def forget(self) -> None:
        """From here on look only at what is to come."""
        self._from = len(self.got)

    def wait(self, wanted: Callable[[Message], object]) -> Message:
        """Return the first message that is wanted, of those since `forget` or to come; each of them fits the list."""

        def found() -> Message | None:
            return next((message for message in self.got[self._from :] if wanted(message)), None)

        with self._arrived:
            assert self._arrived.wait_for(lambda: found() is not None, 60), self.got
        assert [refusal("to_panel", message) for message in self.got] == [None] * len(self.got)
        message = found()
        assert message is not None
        return message

    def state(self, **wanted: object) -> Message:
        """Wait for an update whose state has these values."""
        return self.wait(lambda message: wanted.items() <= message.get("state", {}).items())


@pytest.fixture
def tracing() -> Iterator[Tracing]:
    tracing = Tracing({})
    yield tracing
    tracing.close()


@pytest.fixture
def panel(tracing: Tracing) -> Iterator[Panel]:
    panel = Panel(tracing, None)
    yield panel
    panel.close()


@pytest.fixture
def front(panel: Panel) -> FrontEnd:
    return FrontEnd(panel)


def trace(tracing: Tracing, work: Callable[[], object], count: int = 1, id: str = "a") -> None:
    tracing.begin(Cell(f"<cell {count}>", "", count, id), Options())
    try:
        work()
    finally:
        tracing.finish()


@pytest.mark.parametrize(("tag", "expected"), [("zh-CN", "zh"), ("en", "en"), ("fr_FR", None)])
def test_the_front_end_sends_its_display_language(
    panel: Panel, tag: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language.CHOICE, "front_end", None)
    assert FrontEnd(panel).ask("language", tag=tag)["kind"] == "done"
    assert language.CHOICE.front_end == expected


def test_a_front_end_is_welcomed_with_the_state(front: FrontEnd) -> None:
    assert front.welcome["protocol"] == 1
    assert front.welcome["fresh"]
    front.state(tracing=False, simulated=0, running=False)


def test_every_cell_is_traced_when_the_panel_asks_for_it(front: FrontEnd, tracing: Tracing) -> None:
    assert front.ask("trace_cells", on=True)["kind"] == "done"
    assert tracing.on
    front.state(tracing=True)
    front.ask("trace_cells", on=False)
    assert not tracing.on


def test_the_new_state_comes_before_the_answer_and_no_older_one_after_it(front: FrontEnd, tracing: Tracing) -> None:
    for on in (True, False) * 20:
        front.ask("trace_cells", on=on)
        answered = len(front.got)
        states = [message["state"]["tracing"] for message in front.got if "state" in message]
        assert states[-1] is on
        assert all(message["state"]["tracing"] is on for message in front.got[answered:] if "state" in message)


def test_a_request_to_trace_the_next_run_of_a_cell_works_once(panel: Panel, tracing: Tracing) -> None:
    FrontEnd(panel).ask("trace_next", cell="a")
    other, requested = Cell("f", "", 1, "b"), Cell("f", "", 2, "a")
    assert [tracing.take_request(cell) for cell in (other, requested, requested)] == [False, True, False]


def test_what_another_one_switches_reaches_all(panel: Panel, tracing: Tracing) -> None:
    fronts = [FrontEnd(panel), FrontEnd(panel)]
    fronts[0].ask("trace_cells", on=True)
    for front in fronts:
        front.state(tracing=True)
        front.forget()
    tracing.switch(on=False)
    for front in fronts:
        front.state(tracing=False)


def test_devices_are_simulated_and_taken_away(front: FrontEnd, tracing: Tracing) -> None:
    assert front.ask("simulate", devices=2)["kind"] == "done"
    assert torch.cuda.device_count() == 2
    front.state(simulated=2)
    front.ask("simulate", devices=0)
    assert torch.cuda.device_count() == 0


def test_what_cannot_be_done_is_refused_with_the_reason(panel: Panel) -> None:
    answer = FrontEnd(panel).ask("simulate", devices=99)
    assert answer["kind"] == "refused"
    assert answer["reason"].startswith("simulate-devices: got 'cuda:99'")


def test_traces_are_sent_once_with_an_outline_that_decodes(front: FrontEnd, tracing: Tracing) -> None:
    trace(tracing, lambda: torch.ones(3) + 1, count=7)
    message = front.wait(lambda message: message.get("traces"))
    assert [(each["label"], each["cell"], each["ops"]) for each in message["traces"]] == [("In[7]", "a", 2)]
    assert message["traces"][0]["seconds"] > 0
    outline = decode(message["traces"][0]["outline"])
    assert (len(outline.ops), list(outline.devices)) == (0, ["cpu"])
    trace(tracing, lambda: torch.ones(3), count=8)
    again = front.wait(lambda message: len(message.get("kept", ())) == 2)
    assert [each["label"] for each in again["traces"]] == ["In[8]"]
    assert again["kept"] == [1, 2]


def test_who_comes_later_gets_all_that_is_kept(panel: Panel, tracing: Tracing) -> None:
    tracing.history.most = 2
    for count in (1, 2, 3):
        trace(tracing, lambda: torch.ones(3), count=count)
    message = FrontEnd(panel).wait(lambda message: message.get("traces"))
    assert [each["label"] for each in message["traces"]] == ["In[2]", "In[3]"]


def test_a_trace_is_fetched_whole_and_one_that_is_gone_is_refused(front: FrontEnd, tracing: Tracing) -> None:
    trace(tracing, lambda: torch.ones(3) + 1)
    number = front.wait(lambda message: message.get("traces"))["traces"][0]["trace"]
    assert len(decode(front.ask("fetch", trace=number)["data"]).ops) == 2
    assert front.ask("fetch", trace=99)["reason"].startswith("trace-gone: got trace 99;")


def test_while_a_cell_runs_its_counts_come_in_and_stop_when_it_ends(front: FrontEnd, tracing: Tracing) -> None:
    def work() -> None:
        for _ in range(10):
            torch.ones(4)
        seen = front.wait(lambda message: message.get("live", {}).get("ops") == 10)
        assert seen["live"]["label"] == "In[3]"
        assert seen["live"]["cell"] == "a"
        assert seen["live"]["devices"] == [{"device": "cpu", "simulated": False, "ops": 10, "bytes": 160}]

    trace(tracing, work, count=3)
    ended = front.wait(lambda message: message.get("traces"))
    assert not ended["state"]["running"]


def test_a_hidden_panel_hears_of_traces_but_no_cell_is_counted_for_it(panel: Panel, tracing: Tracing) -> None:
    front = FrontEnd(panel, visible=False)

    def work() -> None:
        torch.ones(4)
        front.state(running=True)
        threading.Event().wait(3 * PERIOD)  # time in which counts would have come

    trace(tracing, work)
    front.wait(lambda message: message.get("traces"))
    assert not any("live" in message or "inventory" in message for message in front.got)


def test_many_changes_become_few_messages(front: FrontEnd, tracing: Tracing) -> None:
    begun, sent = monotonic(), len(front.got)
    while monotonic() - begun < 1.0:
        tracing.switch(on=True)
        tracing.switch(on=False)
    assert len(front.got) - sent <= 10 * (monotonic() - begun)


def test_who_is_gone_gets_nothing(panel: Panel, tracing: Tracing) -> None:
    gone, there = FrontEnd(panel), FrontEnd(panel)
    gone.state(tracing=False)
    panel.disconnect(gone._take)
    before = len(gone.got)
    tracing.switch(on=True)
    there.state(tracing=True)
    assert len(gone.got) == before


def test_an_update_that_could_not_be_sent_comes_with_the_next_one(
    panel: Panel, tracing: Tracing, caplog: pytest.LogCaptureFixture
) -> None:
    front, failed = FrontEnd(panel, greet=False), threading.Event()

    def broken(message: Message) -> None:
        if message.get("traces") and not failed.is_set():
            failed.set()
            raise OSError("this socket is closed")
        front._take(message)

    front.send = panel.connect(broken)
    front.ask("hello", protocol=SPEC["protocol"], visible=True)
    with caplog.at_level(logging.WARNING, logger="devtrace"):
        trace(tracing, lambda: torch.ones(3))
        assert failed.wait(60)
        tracing.switch(on=True)
        assert len(front.wait(lambda message: message.get("traces"))["traces"]) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "a message to the page was not sent: OSError: this socket is closed"
    ]


def test_a_panel_that_cannot_be_reached_leaves_the_others_theirs(panel: Panel, tracing: Tracing) -> None:
    def broken(message: Message) -> None:
        if message["kind"] == "update":
            raise OSError("this socket is closed")

    panel.connect(broken)({"kind": "hello", "request": 1, "protocol": SPEC["protocol"], "visible": True})
    front = FrontEnd(panel)
    for count in (1, 2):
        front.forget()
        trace(tracing, lambda: torch.ones(3), count)
        assert front.wait(lambda message: message.get("traces"))["traces"][0]["label"] == f"In[{count}]"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"kind": "run", "code": "1"}, "a message of an unknown kind: 'run'"),
        ({"kind": "trace_cells", "request": 1, "on": "yes"}, "trace_cells.on is 'yes', expected flag"),
        ({"kind": "trace_cells", "request": 1}, "trace_cells has no on"),
        ({"kind": "show", "request": 1, "visible": True, "code": "x"}, "show has an unknown field 'code'"),
        ({"kind": "fetch", "request": 1, "trace": -1}, "fetch.trace is -1, expected count"),
        ({"kind": "fetch", "request": 1, "trace": True}, "fetch.trace is True, expected count"),
        ({"kind": ["hello"]}, "a message of an unknown kind: ['hello']"),
        ("hello", "a message of an unknown kind: 'hello'"),
        (None, "a message of an unknown kind: None"),
        ({"kind": "trace_next", "request": 1, "cell": "a\nb" * 99_999}, "trace_next.cell is 'a\\nba"),
    ],
)
def test_what_is_not_on_the_list_is_refused_with_one_log_line(
    front: FrontEnd, caplog: pytest.LogCaptureFixture, message: object, reason: str
) -> None:
    answers = len(front.got)
    with caplog.at_level(logging.WARNING, logger="devtrace"):
        front.send(message)
    assert [record.getMessage().startswith(f"refused from the sidebar: {reason}") for record in caplog.records] == [
        True
    ]
    assert "\n" not in caplog.text.strip()
    assert len([got for got in front.got[answers:] if got["kind"] != "update"]) == 0


def test_a_front_end_of_another_protocol_is_sent_ours_whatever_else_it_asks(panel: Panel) -> None:
    front = FrontEnd(panel, greet=False)
    front.send({"kind": "hello", "request": 5, "protocol": 99, "theme": "dark"})
    assert front.wait(lambda message: message["kind"] == "welcome")["protocol"] == SPEC["protocol"]
    front.panel.tracing.switch(on=True)
    assert [message["kind"] for message in front.got] == ["welcome"]


# The listing of the namespace, in the thread of a loop.


class Kernel:
    """A loop as ipykernel runs one: cells and messages in one thread."""

    def __init__(self, namespace: Message) -> None:
        self.tracing = Tracing(namespace)
        self.loop = asyncio.new_event_loop()
        self.namespace = namespace
        self.panel = Panel(self.tracing, self.loop)
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def call(self, act: Callable[[], Any]) -> Any:
        async def called() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(60)

    def cell(self, act: Callable[[], object]) -> None:
        def run() -> None:
            self.panel.cell_begins()
            act()
            self.panel.cell_ended()

        self.call(run)

    def close(self) -> None:
        self.call(self.panel.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self.tracing.close()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel({"x": torch.ones(4), "_hidden": torch.ones(1), "In": [""], "Out": {3: torch.ones(2)}})
    yield kernel
    kernel.close()


def names(message: Message) -> set[str]:
    return {holding["name"] for holding in message["inventory"]["holdings"]}


def listed(front: FrontEnd, *wanted: str) -> Message:
    return front.wait(lambda message: "inventory" in message and names(message) == set(wanted))


def test_a_visible_panel_is_sent_what_the_users_names_refer_to(kernel: Kernel) -> None:
    assert listed(FrontEnd(kernel.panel), "x", "Out[3]")["inventory"]["devices"] == [
        {"device": "cpu", "simulated": False, "tensors": 2, "parameters": 0, "bytes": 24}
    ]


def test_after_a_cell_the_names_are_listed_again_and_sent_if_they_changed(kernel: Kernel) -> None:
    front = FrontEnd(kernel.panel)
    listed(front, "x", "Out[3]")
    kernel.cell(lambda: kernel.namespace.update(y=torch.ones(1)))
    listed(front, "x", "Out[3]", "y")
    front.forget()
    count = len(front.got)
    kernel.cell(lambda: None)
    kernel.cell(lambda: kernel.namespace.pop("y"))
    listed(front, "x", "Out[3]")
    assert len([message for message in front.got[count:] if "inventory" in message]) == 1


def test_a_panel_that_becomes_visible_is_sent_them_then(kernel: Kernel) -> None:
    front = FrontEnd(kernel.panel, visible=False)
    kernel.cell(lambda: None)
    assert not any("inventory" in message for message in front.got)
    front.ask("show", visible=True)
    listed(front, "x", "Out[3]")


def test_a_cell_that_begins_ends_the_listing_and_what_it_kept_alive(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    begun = threading.Event()

    def slow(names: object, *, simulated: bool) -> Iterator[None]:
        try:
            while True:
                steps.append("step")
                begun.set()
                yield
        finally:
            steps.append("let go")

    monkeypatch.setattr("devtrace.notebook.panel.panel.whole_listing", slow)
    FrontEnd(kernel.panel)
    assert begun.wait(60)
    during: list[int] = []

    def cell() -> None:
        assert steps[-1] == "let go"
        during.append(len(steps))

    kernel.cell(cell)
    assert during


def test_another_message_is_answered_between_two_steps_of_a_listing(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(names: object, *, simulated: bool) -> Iterator[None]:
        while True:
            yield

    monkeypatch.setattr("devtrace.notebook.panel.panel.whole_listing", endless)
    front = FrontEnd(kernel.panel)
    front.state()
    assert [kernel.call(lambda: 7) for _ in range(20)] == [7] * 20


def test_a_simulation_that_is_asked_for_in_a_running_cell_begins_when_it_has_ended(kernel: Kernel) -> None:
    front = FrontEnd(kernel.panel)
    counts: list[int] = []

    def cell() -> None:
        front.send({"kind": "simulate", "request": 99, "devices": 2})
        counts.append(torch.cuda.device_count())

    kernel.cell(cell)
    front.wait(lambda message: message.get("request") == 99)
    counts.append(kernel.call(torch.cuda.device_count))
    kernel.call(kernel.tracing.stop_simulating)
    assert counts == [0, 2]


# Both languages read the same messages.


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({"cpu": [1, 64]}, None),
        ({"cpu": [1, "x"]}, "append.counts{}[] is 'x', expected count"),
        ({"cpu": 1}, "append.counts{} is 1, expected a list"),
        ([], "append.counts is [], expected an object"),
    ],
)
def test_an_object_of_any_keys_is_checked_value_by_value(counts: object, reason: str | None) -> None:
    message: Message = {"kind": "append", "counts": counts}
    message |= {name: ["a"] for name in ("names", "devices", "threads", "simulated")}
    message |= dict.fromkeys(("length", "ops", "seconds", "copies", "copied"), 1)
    assert refusal("to_view", message) == reason


def test_the_setting_ends_the_explaining_of_untraced_errors(front: FrontEnd, tracing: Tracing) -> None:
    explainer = tracing.companions["explain"]
    assert explainer.on
    front.ask("explain", on=False)
    assert not explainer.on


def test_what_is_sent_is_a_golden_that_the_panel_reads_too(
    panel: Panel, tracing: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devtrace.notebook.panel.panel.own_version", lambda: "0.0.0")
    monkeypatch.setattr("os.getcwd", lambda: "/home/user")
    front = FrontEnd(panel)
    mixed = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.nn.Linear(2, 1, device="meta"))
    panel._listed(drain(listing({"x": torch.ones(4), "net": mixed})))
    front.ask("limit", max_ops=5000)
    front.ask("simulate", devices=99)
    front.wait(lambda message: message.get("inventory"))

    def work() -> None:
        torch.ones(3).add_(1)
        front.wait(lambda message: message.get("live", {}).get("ops") == 2)

    trace(tracing, work, count=7)
    front.wait(lambda message: message.get("traces"))
    front.ask("fetch", trace=1)
    hunk = {"cell": "a", "file": "", "line": 2, "before": "", "after": "net.to(device)"}
    bug = {"cell": "a", "line": 3, "message": "`net` is on cpu.", "help": "move it", "hunks": [hunk]}
    changed = [{"cell": "a", "before": "net(x)", "after": "net.to(device)\nnet(x)"}]
    fix = tracing.companions["fix"].fix
    fix.state = {**first_state(), "state": "left", "bugs": [bug], "left": bug, "changed": changed, "run": ["a"]}
    tracing.notify("fixing")
    front.wait(lambda message: message.get("fixing"))
    kinds: dict[str, Message] = {}
    for message in front.got:
        if message["kind"] != "update" or message.get("live", {"ops": 2})["ops"] == 2:
            kinds.setdefault(message["kind"], {}).update(steady(message))
    sent = [dict(sorted(message.items())) for _, message in sorted(kinds.items())]
    assert set(kinds) == set(SPEC["to_panel"])
    assert set(kinds["update"]) == {"kind", *(field.removesuffix("?") for field in SPEC["to_panel"]["update"])}
    assert_golden("messages.json", json.dumps(sent, indent=1) + "\n")


def steady(message: Message) -> Message:
    """Without what differs from run to run: times, and the traces, which have goldens of their own."""
    empty = encode(TraceBuilder().build())
    changed: Message = {}
    if "data" in message:
        changed["data"] = empty
    if "traces" in message:
        changed["traces"] = [each | {"seconds": 0.5, "outline": empty} for each in message["traces"]]
    if "live" in message:
        changed["live"] = message["live"] | {"seconds": 0.25}
    return message | changed
