"""报告中除诊断之外的标签和句子。"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    "label.created": "创建于",
    "label.attached": "挂载于",
    "label.moved": "移动于",
    "label.missed": "被遗漏于",
    "label.then": "随后",
    "label.fix": "修复",
    "site": "{name} 第 {line:d} 行",
    "report.no-line": "位置未知",
    "report.ops": "{ops}。",
    "report.clean": "✓ 没有设备问题：{ops}。",
    "report.ops-of-device": "{device} 上 {count} 个运算",
    "report.no-ops": "没有运行任何运算",
    "report.folded": "（其中 {count} 个重复运算只计数，未保存）",
    "report.count-h2d": "{count} 次复制到设备",
    "report.count-d2h": "{count} 次复制到 CPU",
    "report.count-d2d": "{count} 次设备间复制",
    "report.count-syncs": "CPU 等待设备 {count} 次",
    "report.counts": "{counts}{copied}。",
    "report.copied": "；共复制 {size:bytes}",
    "explained.untraced": "devtrace 对这个错误的解释（它未被追踪）：",
    "explained.not-seen": "这段代码运行时未被追踪：错误之前的经过是从源代码读出的",
    "explained.most-objects": "共查看了 {count:个对象|个对象}；其余的可能被略去",
    "explained.most-items": "对于长列表，只查看前 {count:项|项}；最长的有 {longest:项|项}",
    "explained.as-text": "错误是以文本形式传来的，其中的变量已不存在；要看到该张量，请运行一次：{how}",
    "explained.how-worker": "设置 num_workers=0",
    "explained.how-replica": "直接使用模型本身，不用 DataParallel",
    "explained.how-other": "只用一个线程",
    "explained.no-error": "没有可以解释的错误",
    "explained.other-error": "这个错误与设备无关",
    "explained.failed": "未能解释该错误（{fault}）",
    "explained.unknown-tensor": "它的栈帧和源代码都看不出是哪个张量；记录一次运行就能看出。",
    "explained.unknown-recorded": "从追踪记录中看不出是哪个张量。",
    "report.advice": "{sign} {where}：{message}{label}：{help}。",
    "report.note": "devtrace：{note}",
    "report.above-traceback": "{sign} {where}：{message} ↓ 报告在这段回溯下方。",
    "report.left-on-devices": (
        "{names:and} 留在只为此单元格模拟的 {devices:and} 上；"
        "要在其他单元格中继续使用，请输入 `%devtrace simulate {spec}`"
    ),
    "report.nothing-on-devices": (
        "此单元格没有操作在模拟设备上运行：之前的单元格所创建的内容和所选的设备仍在 CPU 上；"
        "要在设备上试运行，请输入 `%devtrace simulate {spec}`，然后重新运行那些单元格"
    ),
    "report.no-cuda": (
        "此处的 torch 没有可用的 CUDA 设备；要在模拟设备上试运行这个笔记本，请输入 `%devtrace simulate cuda:1`，"
        "再重新运行该单元格"
    ),
    "report.more-names": "另外 {count} 个名称",
    "report.more": "另有 {count} 项诊断",
    "report.rule-failed": "规则 {name} 运行失败（{fault}）；追踪记录是完整的",
    "devices.none": "没有任何名称指向张量。",
    "devices.simulated": "（模拟）",
    "devices.total": "：{count} 个张量，{size:bytes}",
    "devices.more": "另有 {count} 个名称",
    "devices.findings": "{cells} 的诊断：",
    "devices.no-findings": "{cells} 中没有诊断。",
    "devices.no-cells": "尚未追踪任何单元格。",
}
