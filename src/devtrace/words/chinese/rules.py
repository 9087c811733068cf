"""规则对错误和开销的描述，以及修复的内容。"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # what each rule means
    "device-mismatch.meaning": "运算收到了不能一起计算的设备上的张量，因此失败",
    "host-conversion.meaning": "对不在 CPU 上的张量调用 `numpy()` 之类的方法",
    "generator-mismatch.meaning": "随机数生成器与张量不在同一设备",
    "host-sync.meaning": "`.item()`、条件、掩码、打印张量：CPU 一再等待设备",
    "host-to-device-copy.meaning": "同一个张量，或每次少量字节，反复复制到设备",
    "device-to-host-copy.meaning": "同一个张量，或每次少量字节，反复复制到 CPU，或来回复制",
    "device-to-device-copy.meaning": "设备之间重复的复制",
    "cpu-compute.meaning": "设备上的计算中有部分留在了 CPU 上",
    "split-module.meaning": "同一模块的参数分布在多个设备上",
    "idle-optimizer.meaning": "优化器的 `step` 从未得到梯度：它在模型被复制或替换之前创建",
    "device-comparison.meaning": '`x.device == "cpu"` 永远不成立：`torch.device` 不是字符串',
    # errors
    "generator-mismatch.message": (
        "`{name}` 是 {odd} 上的生成器，而随机数要在 {expected} 上生成。一个生成器只能用于一个设备。"
    ),
    "generator-mismatch.default": (
        "`{name}` 是 {odd} 上的生成器，而随机数要在 {expected} 上生成。虽然设置了默认设备，torch 仍在 "
        "{odd} 上创建这个生成器。"
    ),
    "host-conversion.message": "{name:Tensor} 在 {device} 上，而 numpy 只能读取 CPU 的内存。",
    "error.in-torchs-words": "{type}: {text}\n{why}",
    "error.not-explained": "devtrace 未能解释它（{fault}）。",
    # waits of the CPU
    "host-sync.message": "{what}使 CPU 等待 {device} {count} 次{often}，{purpose}。",
    "host-sync.code": "`{code}`",
    "host-sync.line": "这一行",
    "host-sync.device": "设备",
    "host-sync.devices": "{devices:and}",
    "host-sync.once": "（每一步一次）",
    "host-sync.each": "（每一步都有）",
    "host-sync.to-read": "用于读取一个值",
    "host-sync.as-asked": "这是该行的要求",
    "host-sync.later": "每 `N` 步读取一次，或在循环之后读取一次",
    "host-sync.to-count": "用于统计掩码选出的元素个数",
    "host-sync.to-count.help": "保持形状：`torch.where(mask, x, 0)` 或 `x * mask` 不需要计数",
    "host-sync.to-write": "用于输出一个值",
    "host-sync.to-write.help": "每 `N` 步输出一次：`if step % 100 == 0`",
    "host-sync.to-add": "用于加到一个 Python 数上",
    "host-sync.to-add.help": "累加 `{name}.detach()`，在循环之后只读取一次总和",
    "host-sync.to-decide": "用于判断分支",
    "host-sync.to-decide.help": "每 `N` 步检查一次，或用 `torch._assert_async`、`torch.where` 在设备上判断",
    "host-sync.to-keep": "用于保存一个值",
    "host-sync.to-keep.help": "保存 `{name}.detach()`，在循环之后一起读取：`torch.stack(kept).tolist()`",
    "host-sync.to-read.help": "保存 `{name}.detach()`，在循环之后或每 `N` 步读取",
    # copies
    "copy.h2d": "{count} 次复制到设备（共 {size:bytes}）{why}",
    "copy.d2h": "{count} 次复制到 CPU（共 {size:bytes}）{why}",
    "copy.d2d": "{count} 次设备间复制（共 {size:bytes}）{why}",
    "copy.why": "：{habit}",
    "copy.pace": "{pace}{remark}",
    "copy.pace-once": "，每一步一次",
    "copy.pace-each": "，每一步都有",
    "copy.nothing": "。",
    "copy.unpinned": "；源内存未固定时 `non_blocking` 不起作用（`DataLoader(pin_memory=True)`）。",
    "copy.same": "`{name}` 每次都是同一个张量。",
    "copy.same-in-steps": "每一步都复制，而 `{name}` 每次都是同一个张量。",
    "copy.move-module": "把 `{module}` 移动到它工作的设备",
    "copy.move-its-module": "把它的模块移动到它工作的设备",
    "copy.keep": "从一开始就把 `{name}` 放在设备上：创建时写 `device=`",
    "copy.above-loop": "在循环之前移动 `{name}` 一次：`{code}`",
    "copy.once": "在创建处或循环之前移动 `{name}` 一次，之后使用移动后的张量",
    "copy.register": "在创建处注册它：`{buffer}`，这样 `model.to(device)` 会带上它",
    "copy.keep-attribute": "移动 `self.{attribute}` 一次并保留在那里",
    "copy.keep-moved": "在这一行之前保留移动后的结果：`{code}`",
    "copy.keep-moved-or-register": "在这一行之前保留移动后的结果：`{code}`；或在创建处注册它：`{buffer}`",
    "copy.few-bytes": "`{name}` 每次只有几个字节。",
    "copy.few-bytes.help": "先把这些值收集起来（`torch.stack`，或对列表用 `torch.tensor`），只复制一次",
    "copy.in-each-step": "`{name}` 每一步都被复制，CPU 要等待它。",
    "copy.in-each-step.help": "保存这些张量（`x.detach()`），在循环之后或每 `N` 步复制一次",
    "copy.back-computed": "CPU 由 `{name}` 算出的结果又回到设备（{site}）。",
    "copy.back-numpy": "numpy 由 `{name}` 算出的结果又回到设备（{site}）。",
    "copy.back-gradient": "`{name}` 参与训练：CPU 由它算出的结果的梯度又回到设备（{site}）。",
    "copy.back.help": "在设备上完成这项工作，或全部在 CPU 上完成",
    "copy.unused": "`{name}` 被送到设备（{site}），却没有在那里使用。",
    "copy.unused.help": "让它留在 CPU 上",
    "copy.number": "`{name}` 只是一个数，却在每一步都被复制。",
    "copy.number.help": "直接使用这个数，或在设备上创建张量：`torch.full((), value, device=device)`",
    "copy.left-to-ddp": (
        "它们由 `DistributedDataParallel` 移动，而其他输入由程序自己移动（{site}）。没有它时这里会失败。"
    ),
    "copy.left-to-ddp.help": "在 {site} 把这一批的其余部分也移动过去",
    "copy.it": "它",
    # other costs
    "cpu-compute.message": "{count} 个运算在 CPU 上计算。",
    "cpu-compute.module": "{count} 个运算在 CPU 上计算：`{module}` 在那里处理来自设备的数据。",
    "cpu-compute.help": "把 `{module}` 移动到其输入所在的设备，输入保持不动",
    "split-module.message": "`{module}` 的参数和缓冲区分布在 {devices:and} 上。",
    "split-module.help": "把 `{module}` 整体移动",
    "idle-optimizer.message": (
        "执行了 {count} 次 `step`，这个优化器持有的参数却从未有梯度：它什么也没有改变。"
        "它很可能在模型被复制或参数被替换之前就已创建。"
    ),
    "idle-optimizer.help": "在模型移动完毕、各层确定之后，为实际训练的模型创建优化器",
    "device-comparison.never": "`{code}` 永远不成立：`torch.device` 不等于字符串。",
    "device-comparison.always": "`{code}` 永远成立：`torch.device` 不等于字符串。",
    "device-comparison.type": "比较它的类型：`{code}`",
    "device-comparison.text": "比较它的文本：`{code}`",
    # lines of packages
    "package.called": "它在 {package} 中，由 {caller}{more} 调用：`{text}`。",
    "package.more": "（另有 {count} 行也是如此）",
    "package.of": "它在 {package} 中。",
    "package.below": "它在 {package} 中，{site}：`{text}`。",
    "package.advice": "在 {package} 中：{help}",
    "package.advice-until": "在 {package} 中：{help}。在此之前，请在移动 `{root}` 的那一行之后运行：`{code}`",
    "package.advice-upstream": "在 {package} 中：{help}；请使用已包含此修改的版本，或向该软件包报告",
    # what an edit does
    "fixed.optimizer-state": "在移动之后创建优化器，或同时移动它的状态",
    "fixed.for-replicas": (
        "每个 GPU 用一个进程运行 `DistributedDataParallel`，或使用把张量保存为 `torch.nn` 参数的模型；"
        "DataParallel 无法复制这一个"
    ),
    "fixed.for-meta": "给它数据：`load_state_dict(..., assign=True)`，或先 `to_empty(device=...)` 再加载权重",
    "fixed.for-gradient": "在 {expected} 上返回这个梯度",
    "fixed.bring-back": "把它移回来：`{code}`",
    "fixed.copy-after-move": "把 `{line}` 移到 `{move}` 之后",
    "fixed.generator": "在那里创建生成器：`{code}`",
    "fixed.draw": "在生成器所在的设备上取随机数，然后移动：`{code}`",
    "fixed.give-generator": "给它一个生成器：`{code}`",
    "fixed.keep-result": "保留 `.to()` 的返回值：`{code}`",
    "fixed.before-use": "在使用之前移动它：`{code}`",
    "fixed.at-use": "在使用处移动它：`{code}`",
    "fixed.before-update": "让它与更新值在同一设备：`{code}`",
    "fixed.below-line": "在第 {line:d} 行之后添加 `{code}`",
    "fixed.top-of-block": "在代码块开头添加 `{code}`",
    "fixed.beside": "像相邻的变量一样移动它：`{code}`",
    "fixed.in-loop": "在循环中移动每一批：`{code}`",
    "fixed.in-package": (
        "在 {package} 的 {site}：用 `.to({device})` 移动它创建的张量；请使用已包含此修改的版本，或向该软件包报告"
    ),
    "fixed.put-there": "把它放到需要的设备上：`{code}`",
    "fixed.attached": "在第 {line:d} 行之后添加 `{code}`，或在挂载之后整体移动",
    "fixed.on-models-device": "在模型所在的设备上创建它：`{code}`",
    "fixed.as-attached": "在挂载时移动它：`{code}`",
    "fixed.where-made": "在创建处移动它：`{code}`",
    "fixed.package-factory": "在 {package} 的 {site}：`{code}`；请使用已包含此修改的版本，或向该软件包报告",
    "fixed.create-with": "创建时写 `{code}`",
    "fixed.give-device": "写明它的设备：`{code}`",
    "fixed.pick-by-where": "保持形状：`{code}.sum()` 不需要计数",
    "fixed.pin-loader": "让加载器固定它生成的批次：`DataLoader(..., pin_memory=True)`",
    "fixed.not-block": "这一批已在固定内存中，CPU 无需等待：`{code}`",
    "fixed.append": "添加 `{kept}`，在循环之后一起读取：`{code}`",
    "fixed.add-up": "在设备上累加 `{kept}`，在循环之后只读取一次总和：`{code}`",
    "fixed.buffer": "把它注册为缓冲区：`{code}`",
    "fixed.container": "把这些层放进 `{container}`：`{code}`",
    "fixed.to-cpu": "先把它移到 CPU：`{code}`",
}
