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
    "report.note": "devtrace：{note}",
    "report.above-traceback": "{sign} {where}：{message} ↓ 报告在这段回溯下方。",
    "report.left-on-devices": (
        "{names:and} 留在只为此单元格模拟的 {devices:and} 上；"
        "要在其他单元格中继续使用，请输入 `%devtrace simulate {spec}`"
    ),
    "report.more-names": "另外 {count} 个名称",
    "report.more": "另有 {count} 项诊断",
    "report.rule-failed": "规则 {name} 运行失败（{fault}）；追踪记录是完整的",
}
