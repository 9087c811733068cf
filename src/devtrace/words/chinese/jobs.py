"""多个 rank 的作业。"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "job.gloo": "程序要求 `nccl` 时，模拟设备上的集合通信改用 `gloo`；数值相同",
}
