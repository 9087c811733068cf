"""Sentences about jobs of several ranks."""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "collective-device.meaning": "a collective on NCCL was given a tensor of the CPU, or the device of another rank",
    "moved-after-wrap.meaning": "a module was moved after DistributedDataParallel or fully_shard had wrapped it",
    "rank-device.meaning": "a rank puts tensors on the device of another rank",
    "ranks-differ.meaning": "a parameter or buffer is on the CPU in some ranks only",
    "job.lacking": (
        "a simulated job needs {names:and} of `torch.distributed`, and torch {version} has none; its ranks have no NCCL"
    ),
    "job.gloo": "simulated devices use `gloo` where the program asks for `nccl`; the values are the same",
    "collective-device.message": "{name:Tensor} is on {device}, and NCCL sends only what is on a GPU.",
    "collective-device.help": "move it to this rank's GPU first, or start the job with "
    '`init_process_group("cpu:gloo,cuda:nccl")`',
    "collective-device.twin.message": "{name:Tensor} is on {device}, which rank {other} uses too. "
    "NCCL needs a GPU of its own for each rank.",
    "collective-device.twin.help": "call `torch.cuda.set_device(local_rank)` before anything is put on a GPU",
    "moved-after-wrap.message": "`{module}` was moved to {device} after {wrapper} had wrapped it. "
    "The wrapper keeps the devices that it saw.",
    "moved-after-wrap.help": "move the module first, then wrap it",
    "rank-device.message": "{count:=Rank|Ranks} {ranks:and} {count:=puts|put} a tensor on {device}, "
    "the device of rank {owner}.",
    "rank-device.checkpoint": "`torch.load` without `map_location` puts it where it was saved.",
    "rank-device.checkpoint.help": 'pass `map_location="cpu"`, or `map_location=f"cuda:{{local_rank}}"`',
    "rank-device.hard-coded": "The line names {device} for every rank.",
    "rank-device.hard-coded.help": 'write `f"cuda:{{local_rank}}"` instead of `"{device}"`',
    "rank-device.current": "Without a number it is the current device, and the rank has set none.",
    "rank-device.current.help": "call `torch.cuda.set_device(local_rank)` at the start of the program",
    "rank-device.other": "",
    "rank-device.other.help": "put it on the rank's own device",
    "ranks-differ.message": "{name:Tensor} is on {device} in {count:=rank|ranks} {ranks:and}, and on a GPU "
    "in {rest:=the other|the others}.",
    "ranks-differ.help": "move the whole model in every rank, in the same lines",
    "ranks.share": "{ranks} {what}",
    "ranks.one": "On rank {rank}:",
    "ranks.all": "On all {total} ranks:",
    "ranks.some": "On {count} of {total} ranks ({ranks:and}):",
    "ranks.all-but": "On {count} of {total} ranks (not on {others:and}):",
    "ranks.many": "On {count} of {total} ranks:",
    "ranks.figures": " (The numbers are those of rank {rank}.)",
    "ranks.line": "{site}: {found} on {count:=rank|ranks} {ranks:and}, {usual} on the others",
    "ranks.copies": "{count:copy|copies}",
    "ranks.waits": "{count:wait|waits} for a device",
    "ranks.ops": "{count:op|ops}",
    "ranks.own-device": "only the rank's own device",
    "ranks.more-lines": "{count:line|lines} more differ between ranks",
    "ranks.first": "rank {rank} failed first, rank {other} {later:time} later; {count:rank|ranks} failed in total",
    "ranks.missing": "{count:=rank|ranks} {ranks:and} left no trace: killed, or still running{position}",
    "rank.ended": "{signal} ended it{position}",
    "rank.unsaved": "rank {rank}: {why}{position}",
    "rank.position": "; last seen in {site}: {text}",
}
