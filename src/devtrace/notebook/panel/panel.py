"""The kernel's side of the sidebar: each front end that listens is sent what is traced, counted, kept and listed.

    panel = Panel(tracing, loop)
    receive = panel.connect(send)            # a front end; both ways go the messages of messages.json
    panel.cell_begins(), panel.cell_ended()  # from IPython's events

Messages come between two cells or, from a front end that uses subshells, in a thread of their own while one runs.
Changes to torch itself wait until the kernel's own thread is idle. The namespace is listed there too (`idle`), but only
while a panel is visible, as a cell that runs is counted.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from devtrace.notebook.cells import Traced, Tracing
from devtrace.notebook.companion import Message
from devtrace.notebook.inventory.inventory import Steps, whole_listing
from devtrace.notebook.panel.feed import PERIOD, Feed
from devtrace.notebook.panel.idle import Lister
from devtrace.notebook.panel.messages import SPEC, is_foreign_hello, refusal
from devtrace.notebook.panel.trace_summaries import find, summary
from devtrace.runtime.device_spec import count_of
from devtrace.runtime.requirements import own_version
from devtrace.words import language
from devtrace.words.errors import DevtraceError, UsageError, named

log = logging.getLogger("devtrace")

Send = Callable[[Message], None]

_EVERYTHING: Final = frozenset({"state", "traces", "inventory", "fixing"})


@dataclass(eq=False)
class _Connection:
    """A front end that listens, and the parts of an update that it has not been sent."""

    send: Send
    visible: bool = False
    due: set[str] = field(default_factory=set)
    last_trace: int = 0  # it has been sent the traces up to this number


class Panel:
    def __init__(self, tracing: Tracing, loop: asyncio.AbstractEventLoop | None) -> None:
        self.tracing = tracing
        self._connections: list[_Connection] = []
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._summaries: dict[int, Message] = {}
        self._inventory: Message | None = None
        self._lister = Lister(loop, self._listing, self._has_visible_panel, self._listed)
        self._feed = Feed(self._send_due, self._pace)
        self._was_used = False
        self._unobserve = tracing.observe(self._tracing_changed)
        self.cell_begins = self._lister.cell_begins

    def cell_ended(self, *result: Any) -> None:
        self._lister.cell_ended(*result)
        for companion in self.tracing.companions.values():
            companion.cell_ended()

    def close(self) -> None:
        self._unobserve()
        self._connections.clear()
        self._lister.close()
        self._feed.close()

    # Front ends come, talk and go. `_on_...` answers a message of that kind; None: it is done.

    def connect(self, send: Send) -> Callable[[object], None]:
        """Return the function that takes the messages of a front end."""
        connection = _Connection(send)
        return lambda data: self._receive(connection, data)

    def disconnect(self, send: Send) -> None:
        with self._lock:
            self._connections = [known for known in self._connections if known.send != send]

    def _receive(self, connection: _Connection, data: Any) -> None:
        if is_foreign_hello(data):
            connection.send({"request": 0, **self._welcome()})
            return
        if reason := refusal("to_kernel", data):
            log.warning("refused from the sidebar: %s", reason)
            return
        self._was_used |= data["kind"] == "simulate"
        if data["kind"] == "simulate" or (data["kind"] == "fix" and not self.tracing.running):
            self._lister.when_idle(lambda: self._answer(connection, data))  # in the main thread, which may be forked
        else:
            self._answer(connection, data)

    def _answer(self, connection: _Connection, data: Message) -> None:
        try:
            handler: Callable[..., Message | None] = getattr(self, f"_on_{data['kind']}", self._on_other)
            reply = handler(connection, data) or {"kind": "done"}
        except Exception as error:  # noqa: BLE001 (the panel shows what failed, and the kernel goes on)
            reason = str(error) if isinstance(error, DevtraceError) else named(error)
            reply = {"kind": "refused", "reason": reason[:1000]}
        connection.send({"request": data["request"], **reply})

    def _on_hello(self, connection: _Connection, data: Message) -> Message:
        connection.visible, connection.last_trace = data["visible"], 0
        with self._lock:
            if connection not in self._connections:
                self._connections.append(connection)
        self._mark_due(_EVERYTHING, connection)
        self._lister.when_idle(self._lister.later)
        return self._welcome()

    def _welcome(self) -> Message:
        return {
            "kind": "welcome",
            "protocol": SPEC["protocol"],
            "version": own_version(),
            "folder": os.getcwd(),
            "fresh": not self._was_used,
        }

    def _on_show(self, connection: _Connection, data: Message) -> None:
        connection.visible = data["visible"]
        self._mark_due({"inventory"}, connection)
        self._lister.when_idle(self._lister.later)

    def _on_language(self, connection: _Connection, data: Message) -> None:
        """Make reports in the front end's display language, where the user chose none."""
        language.CHOICE.front_end = language.of_tag(data["tag"])

    def _on_trace_cells(self, connection: _Connection, data: Message) -> None:
        self._was_used = True
        self.tracing.switch(on=data["on"])
        self._send_state(connection)

    def _on_trace_next(self, connection: _Connection, data: Message) -> None:
        self.tracing.requested.add(data["cell"])

    def _on_limit(self, connection: _Connection, data: Message) -> None:
        self.tracing.max_ops = max(1, data["max_ops"])
        self._mark_due({"state"})
        self._send_state(connection)

    def _on_simulate(self, connection: _Connection, data: Message) -> None:
        try:
            if data["devices"]:
                self.tracing.simulate(f"cuda:{data['devices']}")
            else:
                self.tracing.stop_simulating()
        finally:
            self._send_state(connection)
            self._lister.later()

    def _on_fetch(self, connection: _Connection, data: Message) -> Message:
        from devtrace.trace.format import encode

        return {"kind": "trace", "data": encode(find(self.tracing.history, data["trace"]).trace)}

    def _on_other(self, connection: _Connection, data: Message) -> None:
        """Let the feature that knows this message answer it."""
        if not any(companion.answer(data) for companion in self.tracing.companions.values()):
            raise UsageError.of("feature-absent", name=data["kind"])

    # What changes.

    def _tracing_changed(self, what: str, traced: Traced | None) -> None:
        self._mark_due({"fixing": {"fixing"}, "finished": {"state", "traces"}}.get(what, {"state"}))

    def _listing(self) -> Steps:
        return whole_listing(self.tracing.names_of_user(), simulated=bool(self.tracing.simulated))

    def _listed(self, inventory: Message) -> None:
        if inventory != self._inventory:
            self._inventory = inventory
            self._mark_due({"inventory"})

    def _has_visible_panel(self) -> bool:
        return any(connection.visible for connection in list(self._connections))

    def _pace(self) -> float | None:
        """Return the seconds between two looks at the running cell; None if none runs, or no panel is visible."""
        return PERIOD if self.tracing.run is not None and self._has_visible_panel() else None

    # What is sent, by the feed's thread.

    def _mark_due(self, parts: set[str] | frozenset[str], target: _Connection | None = None) -> None:
        with self._lock:
            connections = [target] if target is not None else list(self._connections)
            for connection in connections:
                connection.due |= parts
        if connections:
            self._feed.wake()

    def _send_due(self) -> int:
        """Send each panel, in one message, what is due to it; return the number of messages."""
        live = self._live_counts() if self._pace() is not None else None
        sent, faults = 0, list[Exception]()
        for connection in list(self._connections):
            with self._lock:
                due, connection.due = connection.due, set()
            try:
                sent += self._send_update(connection, due, live)
            except Exception as fault:  # noqa: BLE001 (the feed logs it, once the others have got theirs)
                faults.append(fault)
                connection.last_trace = 0
                with self._lock:
                    connection.due |= due
        if faults:
            raise faults[0]
        return sent

    def _send_update(self, connection: _Connection, due: set[str], live: Message | None) -> bool:
        update: Message = {}
        if "traces" in due:
            kept, known = self.tracing.history.numbered, self._summaries
            self._summaries = {number: known.get(number) or summary(number, traced) for number, traced in kept.items()}
            update["traces"] = [part for number, part in self._summaries.items() if number > connection.last_trace]
            update["kept"] = [*kept]
            connection.last_trace = max([connection.last_trace, *kept])
        if connection.visible and "inventory" in due and self._inventory is not None:
            update["inventory"] = self._inventory
        for companion in self.tracing.companions.values():
            update |= companion.news(due)
        if live is not None and connection.visible:
            update["live"] = live
        with self._sending:
            if "state" in due:
                update["state"] = self._state()
            if update:
                connection.send({"kind": "update", **update})
        return bool(update)

    def _send_state(self, connection: _Connection) -> None:
        """Send the state before the answer to the front end that changed it: no older state comes after that."""
        with self._sending:
            connection.due.discard("state")
            connection.send({"kind": "update", "state": self._state()})

    def _state(self) -> Message:
        return {
            "tracing": self.tracing.on,
            "simulated": count_of(self.tracing.simulated) if self.tracing.simulated else 0,
            "max_ops": self.tracing.max_ops,
            "running": self.tracing.run is not None,
        }

    def _live_counts(self) -> Message | None:
        """Return what the traced cell has done so far, None where it has just ended."""
        run = self.tracing.run
        if run is None:
            return None
        counts = run.counts()
        simulated = bool(run.options.simulate or self.tracing.simulated)
        return {
            "label": run.cell.label,
            "cell": run.cell.id,
            "seconds": monotonic() - run.began,
            "ops": counts.ops if counts else 0,
            "copies": counts.copies if counts else 0,
            "copied": counts.copied if counts else 0,
            "devices": [
                {"device": device, "simulated": simulated and device.startswith("cuda"), "ops": ops, "bytes": size}
                for device, (ops, size) in sorted((counts.devices if counts else {}).items())
            ],
        }
