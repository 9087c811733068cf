"""The sidebar's comm: the only module that may import comm. Its messages are `panel`'s business."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from devtrace.notebook.cells import Tracing

if TYPE_CHECKING:
    from comm.base_comm import BaseComm

TARGET: Final = "devtrace"


def open_panel(shell: Any, tracing: Tracing) -> Callable[[], None]:
    """Let sidebars connect to this shell's kernel, where it has one; return the function that ends that."""
    if getattr(shell, "kernel", None) is None:
        return lambda: None
    from comm import get_comm_manager

    from devtrace.notebook.panel.panel import Panel

    manager = get_comm_manager()
    panel = Panel(tracing, _loop())
    comms: list[BaseComm] = []

    def opened(comm: BaseComm, message: dict[str, Any]) -> None:
        send = comm.send
        receive = panel.connect(send)

        def closed(_: object) -> None:
            panel.disconnect(send)
            comms.remove(comm)

        comms.append(comm)
        comm.on_msg(lambda message: receive(message["content"]["data"]))
        comm.on_close(closed)
        receive(message["content"]["data"])

    with ExitStack() as undo:
        undo.callback(panel.close)
        manager.register_target(TARGET, opened)
        undo.callback(_unregister, manager, opened)
        undo.callback(_close_all, comms)
        for event, callback in (("pre_run_cell", panel.cell_begins), ("post_run_cell", panel.cell_ended)):
            shell.events.register(event, callback)
            undo.callback(shell.events.unregister, event, callback)
        return undo.pop_all().close


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _unregister(manager: Any, target: object) -> None:
    if manager.targets.get(TARGET) is target:
        manager.unregister_target(TARGET, target)


def _close_all(comms: list[BaseComm]) -> None:
    for comm in list(comms):
        comm.close()
