"""报告如何描述设备不一致及其原因；键与 english/causes.py 相同。"""

from __future__ import annotations

from typing import Final

SENTENCES: Final[dict[str, str]] = {
    # who is where
    "explained.probably": "从源代码看，很可能是：{reason}",
    "mismatch.tensor": "{name:Tensor} 在 {odd} 上，而{rest}。",
    "mismatch.tensors": "{name:Tensor} 和 `{sibling}` 在 {odd} 上，而{rest}。",
    "mismatch.computed": "{operand:Tensor} 由 `{name}` 计算得出，因此在 {odd} 上，而{rest}。",
    "mismatch.inputs": "此运算的其{count:=他|余}输入在 {expected} 上",
    "mismatch.module": "`{module}` 其余的 {count} 个张量在 {expected} 上",
    "mismatch.module-in-part": "`{module}` 的另外 {count} 个张量在 {expected} 上",
    "mismatch.gradient": "反向传播要求这个梯度在 {expected} 上",
    "mismatch.copy": "这一行要把它复制到 {expected}",
    "mismatch.copy-somewhere": "这一行要复制它",
    # what else there is to say
    "mismatch.asked": "这一行要求使用 {expected}：{line} `{text}`。",
    "mismatch.either": "如果本意是 {odd}：{line} 把另一个输入放到了 {expected} 上，`{text}`。",
    "mismatch.replica": (
        "错误发生在 DataParallel 位于 {expected} 的副本中（{thread}）。所有副本共用这个张量：DataParallel "
        "只复制已注册的参数和缓冲区。"
    ),
    "mismatch.replica-object": (
        "错误发生在 DataParallel 位于 {expected} 的副本中（{thread}）。所有副本通过同一个 `{kind}` 共用这个张量："
        "DataParallel 只复制已注册的参数和缓冲区。"
    ),
    "mismatch.package": "这一行属于软件包 {package}。",
    "mismatch.package-owner": "这一行属于软件包 {package}，持有该张量的代码在 {owner}：`{owner_text}`。",
    "mismatch.package-entered": "你的代码从 {caller} 调用了它：`{text}`。",
    "mismatch.evaluation": "训练没有执行到这一行；它第一次运行是在不求梯度的评估阶段。",
    "probably": "很可能",
    # attached-after-move
    "attached-after-move.meaning": "在 `model.to()` 之后才把层或参数放进模型",
    "attached-after-move.helps": "再移动一次，或在挂载时移动",
    "attached-after-move.created": "在移动之后",
    "attached-after-move.missed": "",
    "attached-after-move.reason": "`{module}.to()` {probably}在挂载{part}之前就已执行，因此它留在 {odd} 上。",
    "attached-after-move.this-part": "这一部分",
    "attached-after-move.advice": "挂载这一部分之后再移动一次模型",
    # not-registered
    "not-registered.meaning": "它是模块的普通属性，或放在普通列表、字典中，`.to()` 不会移动它",
    "not-registered.helps": "`register_buffer`、`nn.ModuleList`、`nn.ParameterDict`",
    "not-registered.created": "未注册",
    "not-registered.missed": "",
    "not-registered.reason": "`{module}.to()` 只移动已注册的参数和缓冲区，而 `{attribute}` 只是普通属性。",
    "not-registered.reason-container": (
        "`{module}.to()` 只移动已注册的参数和缓冲区，而 `{attribute}` 只是普通的 {kind}。"
    ),
    "not-registered.reason-unnamed": "`{module}.to()` 只移动已注册的参数和缓冲区，而这个张量没有注册。",
    "not-registered.advice": "把它注册为缓冲区或子模块，这样 `.to()` 才会移动它",
    # created-without-device
    "created-without-device.meaning": "调用创建函数（`torch.arange`、`torch.zeros`）时没有写 `device=`",
    "created-without-device.helps": "`device=x.device`",
    "created-without-device.created": "没有 device=",
    "created-without-device.missed": "在此之前执行",
    "created-without-device.reason": "调用 `{call}` 时没有写 `device=`，因此结果在默认设备 {odd} 上。",
    "created-without-device.reason-unnamed": "创建它时没有写 `device=`，因此结果在默认设备 {odd} 上。",
    "created-without-device.advice": "在另一个输入所在的设备上创建它：device=x.device",
    # never-moved
    "never-moved.meaning": "在 CPU 上创建或加载，之后没有代码移动它",
    "never-moved.helps": "在创建处移动它，或保留 `.to()` 的返回值",
    "never-moved.created": "从未移动",
    "never-moved.missed": "",
    "never-moved.reason": "没有代码把它移动到 {expected}。",
    "never-moved.reason-inferred": "很可能没有代码把它移动到 {expected}。",
    "never-moved.reason-module": "没有代码把 `{module}` 移动到 {expected}。",
    "never-moved.reason-module-inferred": "很可能没有代码把 `{module}` 移动到 {expected}。",
    "never-moved.reason-beside": "{line} 把 `{neighbour}` 移动到了 {expected}，却遗漏了这个张量。",
    "never-moved.reason-dropped": "`.to()` 返回移动后的副本，原张量仍留在 {odd} 上；程序没有保留这个副本。",
    "never-moved.reason-numpy": "默认设备只对 `torch.zeros` 这样的创建函数生效；这个张量的内存来自 numpy。",
    "never-moved.advice": "在创建处把它移动到 {expected}，一次即可",
    # stale-copy
    "stale-copy.meaning": "在原张量移动之前就取了副本或缓存",
    "stale-copy.helps": "移动之后再取",
    "stale-copy.created": "在移动之前",
    "stale-copy.missed": "",
    "stale-copy.reason": "它在原张量移动到 {expected} 之前就已生成，因此留在 {odd} 上。",
    "stale-copy.reason-itself": "{line} 使用的是它在 {expected} 上的副本；该张量本身仍留在 {odd} 上。",
    "stale-copy.advice": "移动之后再创建这个副本",
    # wrong-device
    "wrong-device.meaning": "某一行指定了这个设备",
    "wrong-device.helps": "使用另一个输入的设备",
    "wrong-device.created": "放到了这个设备上",
    "wrong-device.missed": "",
    "wrong-device.reason": "程序中有一行指定了 {odd}，而没有使用另一个输入的设备。",
    "wrong-device.reason-meta": "meta 上的张量只有形状，没有数据，也没有代码给它数据。",
    "wrong-device.reason-gradient": ("它所属函数的 `backward` 中有一行指定了 {odd}；梯度应与其张量在同一设备上。"),
    "wrong-device.reason-stayed": "计算移到了 {expected}，它却留在 {odd} 上。",
    "wrong-device.advice": "使用另一个输入的设备：.to(x.device)",
    # host-boundary
    "host-boundary.meaning": "numpy、Python 或文件需要张量在 CPU 上",
    "host-boundary.helps": "先 `.detach().cpu()`",
    "host-boundary.created": "在设备上",
    "host-boundary.missed": "",
    "host-boundary.advice": "先把它复制到 CPU：x.cpu().numpy()",
    # generator-device
    "generator-device.meaning": "随机数生成器属于另一个设备",
    "generator-device.helps": "`torch.Generator(device=...)`",
    "generator-device.created": "在这个设备上",
    "generator-device.missed": "",
    "generator-device.advice": "在随机数所在的设备上创建生成器：torch.Generator(device=...)",
    # default-device
    "default-device.meaning": "设置了默认设备，创建函数采用了它",
    "default-device.helps": "写明设备，或取消默认设备",
    "default-device.created": "在默认设备上",
    "default-device.missed": "",
    "default-device.reason": "默认设备设为 {odd}，而创建这个张量时没有写 `device=`。",
    "default-device.advice": "用 device= 写明设备，或不要改动默认设备",
    # unknown
    "unknown.meaning": "已看到，但原因不明",
    "unknown.helps": "报告会列出已知的张量、创建处和所在行",
    "unknown.created": "",
    "unknown.missed": "",
    "unknown.advice": "把这一行的张量放到同一个设备上",
}
