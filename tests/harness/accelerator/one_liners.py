"""One-liners, with the data that each carries between devices and how often the host waits for a device in it.

`GENUINE` is what a genuine device does. Where a simulated one does otherwise, the reason is beside it.
"""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any, Final, NamedTuple

import numpy as np
import torch

import devtrace

Carried = tuple[tuple[tuple[str, int], ...], int]

GENUINE: Final[dict[str, Carried]] = {
    "torch.ones(4).to(d)": ((("cpu>dev", 16),), 0),
    "getattr(torch.ones(4),d.type)()": ((("cpu>dev", 16),), 0),
    "torch.ones(4,device=d).cpu()": ((("dev>cpu", 16),), 0),
    "torch.tensor([1.,2.],device=d)": ((("cpu>dev", 8),), 0),
    "x.new_tensor([1.,2.])": ((("cpu>dev", 8),), 0),
    "torch.as_tensor([1.,2.],device=d)": ((("cpu>dev", 8),), 0),
    "torch.as_tensor(n,device=d)": ((("cpu>dev", 12),), 0),
    "torch.from_numpy(n).to(d)": ((("cpu>dev", 12),), 0),
    "x[[0,1]]": ((("cpu>dev", 16),), 0),
    "x[np.array([1,2])]": ((("cpu>dev", 16),), 0),
    "x[[[0,1],[1,2]],]": ((("cpu>dev", 32),), 0),
    "x[[True,False,True,False]]": ((("cpu>dev", 4),), 1),
    "x.view(2,2)[[0,1],[1,0]]": ((("cpu>dev", 16), ("cpu>dev", 16)), 0),
    "x[torch.tensor([0,1])]": ((), 0),
    "x[1]": ((), 0),
    "x[mask]": ((), 1),
    "x[0]=5.0": ((), 0),
    "x[mask]=0.5": ((), 1),
    "x[[0,1]]=2.0": ((("cpu>dev", 16),), 0),
    "x.sum().item()": ((), 1),
    "x.tolist()": ((("dev>cpu", 16),), 0),
    "bool(x.sum()>0)": ((), 1),
    "int(x.sum())": ((), 1),
    "if x.sum()>0: pass": ((), 1),
    "x.nonzero()": ((), 1),
    "x.cpu().numpy()": ((("dev>cpu", 16),), 0),
    'f"{x.sum()}"': ((), 1),
    'f"{x}"': ((), 1),
    "print(x)": ((), 1),
    "str(x)": ((), 1),
    "repr(x.view(2,2))": ((), 1),
    "torch.load(io.BytesIO(saved),map_location=d)": ((("cpu>dev", 16),), 0),
    "torch.load(io.BytesIO(saved))": ((("cpu>dev", 16),), 0),
    "torch.save(x,io.BytesIO())": ((("dev>cpu", 16),), 0),
    "copy.deepcopy(x)": ((), 0),
    "torch.ones(3).pin_memory().to(d,non_blocking=True)": ((("cpu>dev", 12),), 0),
    "x.to(other)": ((("dev>dev", 16),), 0),
    "x.copy_(torch.ones(4))": ((("cpu>dev", 16),), 0),
    "torch.equal(x,x)": ((), 1),
    "torch.allclose(x,x)": ((), 1),
    "(x==1).all().item()": ((), 1),
    "torch.unique(x)": ((), 1),
    "x.masked_select(mask)": ((), 1),
    "torch.accelerator.synchronize()": ((), 1),
    "torch.manual_seed(0)": ((), 0),
    "torch.full((2,),3.,device=d)": ((), 0),
    "torch.nn.Linear(2,2).to(d)": ((("cpu>dev", 16), ("cpu>dev", 8)), 0),
    "torch.nn.Linear(2,2,device=d)": ((), 0),
    "copy.deepcopy(lin)": ((), 0),
    "lin.load_state_dict(sd)": ((("cpu>dev", 16), ("cpu>dev", 8)), 0),
    "torch.repeat_interleave(x,2)": ((), 0),
    "torch.repeat_interleave(x, torch.tensor([1,2,1,1],device=d))": ((("cpu>dev", 32),), 1),
    'x.to("cpu",non_blocking=True)': ((("dev>cpu", 16),), 0),
    "x.type(torch.float64)": ((), 0),
    "x.half()": ((), 0),
    "x.clone()": ((), 0),
    "x.is_pinned()": ((), 0),
    "len(x)": ((), 0),
    "list(x)": ((), 0),
    "[float(v) for v in x]": ((), 4),
    "torch.where(x>0)": ((), 1),
    "x.max().item()": ((), 1),
    "torch.linalg.inv(torch.eye(2,device=d))": ((), 0),
    "torch.multinomial(torch.ones(3,device=d),1)": ((), 0),
    "torch.bincount(torch.ones(3,device=d,dtype=torch.long))": ((), 1),
    "pickle.loads(pickle.dumps(x))": ((("dev>cpu", 16), ("cpu>dev", 16), ("cpu>dev", 16)), 0),
    "np.asarray(x.cpu())": ((("dev>cpu", 16),), 0),
    "torch.tensor(x)": ((), 0),
    "torch.stack([torch.tensor(1.),torch.tensor(2.)]).to(d)": ((("cpu>dev", 8),), 0),
    "x+torch.tensor(2.)": ((), 0),
    "x*2.0": ((), 0),
    "torch.nn.utils.clip_grad_norm_(lin.parameters(),1.0)": ((), 0),
}
NUMBER: Final = "for CUDA torch's own C++ keeps the number on the CPU, for other devices it makes it on the device"
LIST: Final = "a tensor of a list comes by one op, and by two where torch's C++ takes the device for the CPU"
ARRAY: Final = (
    "an array as an index is copied by an op of its own, but not where torch's C++ takes the device for the CPU"
)

OF_CUDA: Final[dict[str, tuple[Carried, str]]] = {
    "x[0]=5.0": (((("cpu>dev", 4),), 0), NUMBER),
    "x[mask]=0.5": (((), 0), NUMBER),
}
"""What CUDA, and so a simulated device, does otherwise than any other accelerator."""

OTHER_OPS: Final[dict[str, str]] = {
    "torch.tensor([1.,2.],device=d)": LIST,
    "x.new_tensor([1.,2.])": LIST,
    "torch.as_tensor([1.,2.],device=d)": LIST,
    "torch.repeat_interleave(x, torch.tensor([1,2,1,1],device=d))": LIST,
    "x[np.array([1,2])]": ARRAY,
    "x[0]=5.0": NUMBER,
    "x[mask]=0.5": NUMBER,
    "x[[0,1]]=2.0": NUMBER,
}
"""Where a simulated device gets there by other ops, and why."""


class Seen(NamedTuple):
    """One one-liner: what was carried, and its ops with the devices of what they took and made."""

    carried: Carried
    ops: list[tuple[str, str, list[str], list[str]]]


def seen(device: str) -> dict[str, Seen]:
    """Record each one-liner alone, on a device of this process."""
    warnings.simplefilter("ignore")
    return {code: _seen(code, torch.device(device)) for code in GENUINE}


def seen_simulated() -> dict[str, Seen]:
    with devtrace.simulate("cuda:2"):
        return seen("cuda:0")


def _seen(code: str, device: torch.device) -> Seen:
    names = _names(device)
    with devtrace.record() as recording:
        exec(code, names)
    trace, ledger = recording.trace, recording.report.ledger
    assert all(op.site is not None and op.site.line == 1 for op in trace.ops)
    copies = [(f"{_side(each.from_)}>{_side(each.to)}", each.bytes) for each in trace.copies]
    ops = [(op.name, op.kind, _sides(op.inputs), _sides(op.outputs)) for op in trace.ops]
    return Seen((tuple(copies), sum(row.syncs for row in ledger)), ops)


def _sides(tensors: Any) -> list[str]:
    return [_side(tensor.device) for tensor in tensors]


def _side(device: Any) -> str:
    return "cpu" if device == "cpu" else "dev"


def _names(device: torch.device) -> dict[str, Any]:
    saved = io.BytesIO()
    torch.save(torch.ones(4, device=device), saved)
    linear = torch.nn.Linear(2, 2).to(device)
    linear(torch.ones(1, 2, device=device)).sum().backward()
    return {
        "torch": torch,
        "np": np,
        "io": io,
        "copy": copy,
        "pickle": pickle,
        "d": device,
        "other": torch.device(device.type, 1),
        "n": np.ones(3, dtype=np.float32),
        "x": torch.ones(4, device=device),
        "mask": torch.tensor([True, False, True, False]).to(device),
        "lin": linear,
        "sd": torch.nn.Linear(2, 2).state_dict(),
        "saved": saved.getvalue(),
    }
