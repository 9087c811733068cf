"""What one-liners copy and wait for on a simulated device; `test_accelerator.py` asks a genuine one."""

from __future__ import annotations

import multiprocessing

from accelerator import one_liners


def test_simulated_devices_copy_and_wait_likewise_but_where_cuda_is_known_to() -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "devtrace.recording.recording", "numpy.ma"])
    with context.Pool(1) as pool:  # begun with -c, as which code without a file is the program
        seen = pool.apply_async(one_liners.seen_simulated).get(timeout=280)
    of_cuda = {code: carried for code, (carried, _) in one_liners.OF_CUDA.items()}
    assert {code: each.carried for code, each in seen.items()} == one_liners.GENUINE | of_cuda
    assert all(one_liners.GENUINE[code] != carried for code, carried in of_cuda.items())
