"""多个 rank 的作业。"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "collective-device.meaning": "`NCCL` 集合通信收到了 CPU 上的张量，或两个进程用了同一个设备",
    "moved-after-wrap.meaning": "`DistributedDataParallel` 或 `fully_shard` 包装之后又移动了模块",
    "rank-device.meaning": "某个进程把张量放到了另一个进程的设备上",
    "ranks-differ.meaning": "某个参数或缓冲区只在部分进程中留在 CPU 上",
    "job.lacking": "模拟作业需要 `torch.distributed` 的 {names:and}，而 torch {version} 没有；各进程因此没有 NCCL",
    "job.gloo": "程序要求 `nccl` 时，模拟设备上的集合通信改用 `gloo`；数值相同",
    "collective-device.message": "{name:Tensor} 在 {device} 上，而 `NCCL` 只传输 GPU 上的数据。",
    "collective-device.help": '先把它移到本进程的设备上，或用 `init_process_group("cpu:gloo,cuda:nccl")` 启动作业',
    "collective-device.twin.message": "{name:Tensor} 在 {device} 上，而进程 {other} 也在用它。"
    "`NCCL` 要求每个进程有自己的设备。",
    "collective-device.twin.help": "在把任何数据放到设备上之前调用 `torch.cuda.set_device(local_rank)`",
    "moved-after-wrap.message": "`{module}` 在被 `{wrapper}` 包装之后又移到了 {device}。包装器仍使用包装时的设备。",
    "moved-after-wrap.help": "先移动模块，再包装",
    "rank-device.message": "进程 {ranks:and} 把{count:=一个张量|张量}放到了 {device} 上，那是进程 {owner} 的设备。",
    "rank-device.checkpoint": "没有 `map_location` 的 `torch.load` 会把它放回保存时的设备。",
    "rank-device.checkpoint.help": '传入 `map_location="cpu"` 或 `map_location=f"cuda:{{local_rank}}"`',
    "rank-device.hard-coded": "这一行让每个进程都使用 {device}。",
    "rank-device.hard-coded.help": '把 `"{device}"` 写成 `f"cuda:{{local_rank}}"`',
    "rank-device.current": "不带编号就是当前设备，而该进程没有设置过。",
    "rank-device.current.help": "在程序开头调用 `torch.cuda.set_device(local_rank)`",
    "rank-device.other": "",
    "rank-device.other.help": "把它放到该进程自己的设备上",
    "ranks-differ.message": "{name:Tensor} 在进程 {ranks:and} 中位于 {device}，在其余 {rest} 个进程中位于 GPU 上"
    "{count:=。|。}",
    "ranks-differ.help": "在每个进程中用同样的代码移动整个模型",
    "ranks.share": "{ranks}{what}",
    "ranks.one": "进程 {rank}：",
    "ranks.all": "全部 {total} 个进程：",
    "ranks.some": "{total} 个进程中的 {count} 个（{ranks:and}）：",
    "ranks.all-but": "{total} 个进程中的 {count} 个（除 {others:and}）：",
    "ranks.many": "{total} 个进程中的 {count} 个：",
    "ranks.figures": "（数字为进程 {rank} 的。）",
    "ranks.line": "{site}：{count:=|}进程 {ranks:and} 上有 {found}，其余进程上有 {usual}",
    "ranks.copies": "{count} 次复制",
    "ranks.waits": "{count} 次等待设备",
    "ranks.ops": "{count} 个运算",
    "ranks.own-device": "只有自己的设备",
    "ranks.more-lines": "还有 {count} 行在各进程之间不同",
    "ranks.first": "进程 {rank} 最先失败，进程 {other} 晚 {later:time}；共有 {count} 个进程失败",
    "ranks.missing": "进程 {ranks:and} 没有留下追踪记录：{count:=它|它们}被强行终止，或仍在运行{position}",
    "rank.ended": "被 {signal} 终止{position}",
    "rank.unsaved": "进程 {rank}：{why}{position}",
    "rank.position": "；当时位于 {site}：{text}",
}
