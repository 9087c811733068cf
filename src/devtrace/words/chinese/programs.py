"""命令行、pytest、比较和图片中的文字，以及对记录的说明。"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # help of the command line
    "cli.description": "准确指出 CPU 张量在哪里进入了 GPU 计算。",
    "cli.usage": "用法：",
    "cli.commands": "命令",
    "cli.arguments": "参数",
    "cli.options": "选项",
    "cli.help": "显示此帮助并退出",
    "cli.version": "显示版本并退出",
    "cli.run": "像 Python 那样运行脚本或模块，结束时给出报告",
    "cli.fix": "在模拟设备上反复运行程序，直到没有设备错误，并打印补丁",
    "cli.view": "在浏览器中打开保存的追踪记录、同一任务的各个 rank，或 `torch.profiler` 的导出",
    "cli.check": "说明此 Python 有哪些 torch、设备和 Jupyter",
    "cli.diff": "比较两份保存的追踪记录；若出现新的错误或警告，退出码为 1",
    "cli.untraced": "不作记录，只解释使程序结束的设备错误",
    "cli.module": "运行模块",
    "cli.script": "脚本及其参数",
    "cli.view.html": "把网页写入 `F`，不打开浏览器",
    "cli.diff.html": "把变化和 `B` 的所有视图写成网页",
    "cli.fix.description": (
        "在模拟设备上运行程序，把第一个设备错误的修复应用到内存中的副本，然后再次运行，"
        "直到没有设备错误或无法再修复。补丁写到 `stdout`，其他内容写到 `stderr`。"
    ),
    "cli.fix.caution": (
        "每一轮都会重新运行程序的全部内容：它写入、发送或删除的东西，每一轮都会发生一次。`--rounds 1` "
        "只运行一次，不作任何证明。"
    ),
    "cli.fix.simulate": "设备的数量（`cuda:1`）",
    "cli.fix.costs": "同时修复不必要的拷贝和等待；以值不变、次数更少为证明，每次运行使用相同的随机数",
    "cli.fix.write": "全部证明之后才改动文件；要么全改，要么都不改",
    "cli.fix.rounds": "最多运行 `N` 次（{usual}）",
    "cli.fix.timeout": "每次运行最多 `S` 秒",
    "cli.fix.patch": "同时把补丁写入 `F`",
    # what the commands print
    "cli.written": "devtrace：{what}已写入 {path}",
    "cli.trace": "追踪记录",
    "cli.report": "报告",
    "cli.findings": "诊断列表",
    "cli.sarif": "SARIF 记录",
    "cli.comparison": "比较结果",
    "cli.not-written": "devtrace：{what}无法写入 {path}（{reason}）；已改为写入 {spare}",
    "cli.lost": "devtrace：{what}无法写入 {path}（{reason}），已经丢失",
    "cli.opened": "devtrace：已打开 {page}",
    "cli.open-this": "devtrace：请在浏览器中打开 {page}",
    "run.failed": "devtrace：无法生成报告（{fault}）",
    "run.interrupted": "devtrace：在生成报告时被中断；上面没有提到的内容未保存",
    "run.not-explained": "devtrace：没有解释该错误：{fault}",
    "run.no-torch": "devtrace：程序没有导入 torch，因此没有可报告的内容",
    "run.misplaced": "devtrace：`{flags}` 写在 {script} 之后，因此交给了它。若是给 devtrace 的，请写 `{code}`。",
    "run.no-cuda": "devtrace：此处的 torch 没有可用的 CUDA 设备。要在模拟设备上试运行这个程序：`{code}`",
    "run.rank": "rank {rank}：",
    "run.path-closed": "devtrace：目前无法写入 {path}；程序照常运行",
    "run.progress": "devtrace：{counts}，{time:time}",
    "run.ops": "{count} 个运算",
    "run.line": "devtrace：{text}",
    # devtrace fix
    "fix.run": "第 {number:d} 次运行",
    "fix.run-with": "第 {number:d} 次运行，带有对 {site} 的修复",
    "fix.run-own": "第 {number:d} 次运行，在 {packages} 中寻找修复",
    "fix.mended": "已修复：{site}：{message}",
    "fix.cheaper": "开销更小，值不变：{site}：{message}",
    "fix.reason-of-cost": "（之前 {before:d} 次，之后 {after:d} 次）{message}",
    "fix.cost-left": "保持原样：{site}：{why}：{message}",
    "fix.cost-ends": "应用修复后，程序的结束方式不同：{raised}",
    "fix.cost-no-values": "程序没有留下变量，也没有打印任何可以比较的内容",
    "fix.cost-not-less": "修复没有减少次数",
    "fix.cost-values": "修复改变了值（{names}）",
    "fix.cost-output": "程序打印的内容",
    "fix.costs-unknown": "开销保持原样：只有程序运行到结束，才能看出值是否不变",
    "fix.left": "未修复：{site}：{message}",
    "fix.help": "修复：{help}",
    "fix.no-edit": "没有能证明的修改",
    "fix.another-error": "报告给出的修复引发了另一个错误：{raised}",
    "fix.no-help": "报告给出的修复没有作用",
    "fix.devices": "{count} 个模拟设备",
    "fix.not-proven": "未证明：{count} 轮之后，最后的修复没有运行过（`--rounds`）",
    "fix.proven": "已证明：程序在 {devices}上运行到了结束",
    "fix.proven-with-patch": "已证明：应用补丁后，程序在 {devices}上运行到了结束",
    "fix.time": "在 {devices}上运行到 {limit} 秒的时限：没有设备错误；之后的部分没有运行",
    "fix.ended-early": "在 {devices}上已没有设备错误，但程序提前结束：{raised}",
    "fix.signal": "收到信号",
    "fix.elsewhere": "补丁针对工作目录之外的文件；可在 {folder} 中用 `git apply` 应用",
    "fix.package": "属于已安装的软件包 {package}，`--write` 不会改动它；可在 {folder} 中用 `git apply` 应用：",
    "fix.nothing-written": "没有写入任何内容：`--write` 需要经过证明的修复",
    "fix.written": "已写入：{files}",
    # pytest
    "pytest.marker": (
        '用 devtrace 记录测试；`simulate="cuda:2"` 为它和它的 `fixture` 提供两个模拟的 CUDA 设备；'
        "如果报告中的错误、警告、同步等待或复制超过限制，或有计算不在 `expect` 上，测试失败"
    ),
    "pytest.got": "`pytest.mark.devices`：给出了 {words}；它接受 {form}：{help}",
    "pytest.unnamed": "没有名称的参数",
    "pytest.beyond": "devtrace：{found}，最多允许 {most}",
    "pytest.errors": "{count} 个错误",
    "pytest.warnings": "{count} 个警告",
    # what a recording shows of itself
    "record.not-begun": (
        "尚未记录任何内容。请在代码块之前写 `with devtrace.record() as recording:`，并在代码块之后显示 `recording`。"
    ),
    "simulation.not-begun": (
        '尚未模拟任何设备。请在代码块之前写 `with devtrace.simulate("cuda:{count}"):`，或调用 `.start()`。'
    ),
    "simulation.running": "正在模拟 {devices:and}，直到代码块结束或调用 `.stop()`。",
    "record.running": "这次记录尚未结束。在它的代码块之后，它会显示报告。",
    # notes on a recording
    "note.recording-lost": "记录丢失（{fault}）",
    "note.diagnosis-failed": "诊断失败（{fault}）；追踪记录是完整的",
    "note.op-in-part": "有一个运算没有完整记录：{fault}",
    "note.kept-answer": "{fault} 保留了模拟开始之前、没有 GPU 时的结果：请在模拟开始之后导入它，或清除它的缓存",
    "note.call-missed": "有一次模块调用没有记录：{fault}",
    "note.of-rank": "rank {rank}：{note}",
    "note.expect-unknown": "`--expect {device}`：torch 没有这个设备，因此没有作比较",
    "note.ranks-left-out": (
        "此页面包含 {kept} 个进程的运算，另外 {count} 个进程只有其集合通信：页面最多容纳 {most} 个运算"
    ),
    "note.cut": (
        "此笔记本只含追踪记录中的 {count} 个运算，全部内容有 {size:bytes}，会使它过大；要查看每个运算，"
        "请把追踪记录保存到文件"
    ),
    "note.repetitions": (
        "{count} 次重复中记录了 {recorded} 次；另有约 {ops} 个运算连同其等待和复制没有记录，按相同的重复计数"
    ),
    "note.unseen-lines": "只在未记录的重复中运行的行，只看到了读取张量数值的那些；Python 3.12 及更新版本可以看到全部",
    "note.profiler": (
        "此追踪记录读自 `torch.profiler`，它不记录张量的名称、创建处和所在设备；"
        "运算的设备由它启动的内核和复制得知，行号是所在函数的开头"
    ),
    "note.nested": "内层的记录只在它自己的追踪记录中",
    "note.jit": "`torch.jit.trace` 运行的内容没有记录：它在任何 `TorchDispatchMode` 下都会失败",
    "note.profiler-stack": "导出时没有设置 `with_stack=True`：行号和模块未知",
    # devtrace.expect
    "elsewhere.scalar": "标量",
    "elsewhere.register": '在它的模块中 `register_buffer("{attribute}", ..., persistent=False)`，使 `.to()` 带上它',
    "elsewhere.optimizer": "在创建优化器或加载其状态之前移动模型",
    "elsewhere.before": '在 {line} 之前把它移动到 "{device}"',
    "elsewhere.input": "{op} 的一个输入",
    "elsewhere.line": "{site}：`{text}`",
    "elsewhere.op": "使用它的 {op}",
    "expectation.message": "{name:Tensor} 在 {device} 上；所有计算都应在 {expected} 上。",
    "expectation.object": "对象 {number}",
    # two traces compared
    "diff.finding": "诊断",
    "diff.error": "错误",
    "diff.device": "设备",
    "diff.compute": "计算",
    "diff.copies": "复制",
    "diff.syncs": "等待",
    "diff.ops": "运算",
    "diff.what": "内容",
    "diff.where": "位置",
    "diff.before": "之前",
    "diff.after": "之后",
    "diff.total": "{name} {before} → {after}",
    "diff.first-stopped": "第一次运行以 {type} 结束{where}：因此少做的部分不列出",
    "diff.second-stopped": "第二次运行以 {type} 结束{where}：因此少做的部分不列出",
    "diff.at": "（{site}）",
    "diff.on": "{name} 在 {device} 上",
    "diff.tensors": "{name}（{count} 个张量）",
    "diff.more": "另有 {count} 处变化",
    "diff.untitled": "一份追踪记录",
    "diff.changes": "{first} → {second}：{count} 处变化",
    "diff.same": "{first} → {second}：没有差异",
    # pictures
    "picture.label": "{count} 个运算的时间线：{devices}",
    "picture.ops": "{count} 个运算",
    "picture.simulated": "模拟",
    "picture.ranks": "{total} 个进程中的 {ranks} 号",
    "picture.collectives": "▯ {count} 次集合通信",
    "picture.lanes": "另有 {count} 条泳道",
    "picture.copies": "↓ {count} 次复制，{size:bytes}",
    "picture.pinned": "{count} 次来自固定内存",
    "picture.syncs": "╵ {count} 次同步等待",
    "picture.cut": "// 已缩短，最长 {time:time}",
    "picture.forward": "前向",
    "picture.backward": "反向",
    "picture.optimizer": "优化器",
    "picture.other": "其他",
    "page.no-views": "此 devtrace 安装时没有交互视图。",
    "severity.error": "错误",
    "severity.warning": "警告",
    "severity.note": "提示",
    "figure.nothing": "追踪记录中没有这些内容",
    "figure.devices": "各设备的运算时间",
    "figure.copies": "设备间的复制，按行",
    "figure.modules": "各模块的时间；颜色表示用时最多的设备",
    "figure.no-modules": "各模块的时间",
    "figure.memory": "运算使用的内存下限（张量计到最后一次使用）",
    "figure.phase": "{phase}：{time:time}，{count} 个运算",
    "figure.lane": "{count} 个运算，占时间的 {share}",
    "figure.simulated": "，模拟",
    "figure.no-line": "没有行号",
    "figure.copied": "{count} 次复制，{size:bytes}",
    "figure.way": "{name}：{amount}",
    "figure.peak": "{device}（峰值 {size:bytes}）",
    "figure.bytes": "字节",
    "figure.at": "%{{x:.3f}} ms 时 %{{y:.3s}}B",
}
