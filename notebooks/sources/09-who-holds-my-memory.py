# %% en
# # 9 · Who holds my memory?
#
# **Goal:** find by name who keeps memory, and what an error keeps. **Time:** 15 minutes, without a GPU.
#
# **The story.** A model of half a megabyte trains on a GPU, and its evaluation ends with "CUDA out of memory". The error names sizes: what was
# asked for, what is free. It names no variable. This notebook has a pretended GPU of 64 MB (`%devtrace simulate cuda:1,64MB`), which counts as
# CUDA's caching allocator counts, so that the error comes on any machine; `cuda:1,24GB` rehearses a real card.

# %% zh
# # 9 · 谁占着我的显存？
#
# **目标**：按名字找到谁占着显存，以及错误本身保留了什么。**时间**：15 分钟，不需要 GPU。
#
# **故事。** 一个半兆字节的模型在 GPU 上训练，评估时却以 "CUDA out of memory" 结束。错误信息只有大小：申请了多少，还剩多少；没有变量名。
# 本笔记本使用一块 64 MB 的模拟 GPU（`%devtrace simulate cuda:1,64MB`），它按 CUDA 缓存分配器的方式计数，因此在任何机器上都会出现这个错误；
# `cuda:1,24GB` 则可以预演一块真实的显卡。

# %% code
%load_ext devtrace
import gc

import torch
from torch import nn

%devtrace simulate cuda:1,64MB

# %% code
def make_model(blocks=1):
    torch.manual_seed(0)
    return nn.Sequential(*(
        nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 64)) for _ in range(blocks)
    )).to("cuda")


def batches(count, size=512):
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(size, 64, generator=generator).to("cuda") for _ in range(count))

# %% en
# ## Run it and fail

# %% zh
# ## 运行，然后失败

# %% code raises-exception
%%devtrace first
model = make_model()
losses = []
for batch in batches(40):
    losses.append((model(batch) - batch).square().mean())
mean = sum(losses) / len(losses)

# %% en
# ## Read the report
#
# The report lists **who holds the memory**, the largest first: the name, how it holds it, and the line that made it. Here it is `losses`. Each
# loss is one number of 4 bytes; what it *keeps* is the graph behind it, with the activations of its batch, in case somebody calls
# `backward()`. Nobody will.

# %% zh
# ## 读报告
#
# 报告列出**谁占着显存**，最大的在前：名字、占用的方式，以及创建它的那一行。这里是 `losses`。每个损失只是一个 4 字节的数；
# 它*保留*的是背后的计算图，连同那一批数据的激活，以备有人调用 `backward()`。但不会有人调用。

# %% code
report = %devtrace report first
(finding,) = (each for each in report.findings if each.severity == "error")
largest = finding.holders[0]
largest.name, largest.kind, f"{largest.bytes / finding.bytes:.0%}", finding.edits[0].after.strip()

# %% code folded
assert (finding.rule, largest.name, largest.kind) == ("out-of-memory", "losses", "graph")
assert "detach()" in finding.edits[0].after

# %% en
# ## What the error itself keeps
#
# The failed cell is over, and its memory is not free: `losses` is there, and so is the error. A notebook keeps the last error in several places
# (`sys.last_value` is one), the error its traceback, that its frames, and these what the layers had in hand. Another, small error takes its
# place; they refer to each other in a ring, so Python's collector has to come by.

# %% zh
# ## 错误本身保留了什么
#
# 失败的单元格已经结束，它的显存却没有释放：`losses` 还在，错误也还在。笔记本在好几个地方保留着上一个错误（`sys.last_value` 是其中之一），
# 错误保留着回溯，回溯保留着栈帧，栈帧保留着各层手里的张量。另一个小错误会取代它；
# 它们互相引用成环，所以还需要 Python 的垃圾回收。

# %% code
held = [torch.cuda.memory_allocated()]
del losses
held.append(torch.cuda.memory_allocated())

# %% code raises-exception
1 / 0

# %% code
gc.collect()
held.append(torch.cuda.memory_allocated())
[f"{each / 2**20:.1f} MiB" for each in held]

# %% code folded
assert held[0] > held[1] > held[2]

# %% en
# ## The fix
#
# Keep the number and not its graph: `.detach()`, or `.item()` where a Python number will do. An evaluation is better off under
# `torch.no_grad()`, which makes no graph in the first place.

# %% zh
# ## 修复
#
# 只保留数值，不保留计算图：`.detach()`；如果只需要 Python 的数，用 `.item()`。评估最好放在 `torch.no_grad()` 之下，那样一开始就不会建图。

# %% code
%%devtrace fixed
model = make_model()
losses = []
with torch.no_grad():
    for batch in batches(40):
        losses.append((model(batch) - batch).square().mean())
mean = sum(losses) / len(losses)

# %% code
report = %devtrace report fixed
float(mean)

# %% code folded
assert not any(each.severity in ("error", "warning") for each in report.findings)

# %% en
# ## Long before it fails
#
# The same leak is seen in a run that ends well: what grows from step to step is a warning. `--memory` asks for more, who held the device's
# memory when it was highest, and the tab **Memory** of the report draws the curve.

# %% zh
# ## 在失败之前很久
#
# 同样的泄漏在顺利结束的运行里也能看到：逐步增长的东西会得到一条警告。`--memory` 会再问一句，显存最高时是谁占着它；
# 报告的**显存**页会画出曲线。

# %% code
%%devtrace growing --memory
model = make_model()
total = torch.zeros((), device="cuda")
for batch in batches(9):
    total = total + (model(batch) - batch).square().mean()
print(f"{total.item() / 9:.3f}")

# %% code
report = %devtrace report growing
(warning,) = (each for each in report.findings if each.rule == "memory-growth")
(highest,) = (each for each in report.findings if each.rule == "memory-peak")
print(warning.message)
print(highest.message)

# %% code folded
assert warning.holders[0].name == highest.holders[0].name == "total"

# %% en
# ## A step that is too large
#
# Nothing is kept here that need not be: one training step on a batch of 2048 asks for more than the card has. The report says so, and what of the
# step would take less.

# %% zh
# ## 一步就太大
#
# 这里没有保留任何多余的东西：一批 2048 个样本的一步训练，需要的比显卡有的多。报告会说明这一点，以及这一步怎样才能少占一些。

# %% code raises-exception
%%devtrace large
del total
model = make_model(blocks=6)
(batch,) = batches(1, size=2048)
(model(batch) - batch).square().mean().backward()

# %% code
report = %devtrace report large
(finding,) = (each for each in report.findings if each.severity == "error")
finding.help

# %% code folded
assert finding.rule == "out-of-memory"

# %% code raises-exception
1 / 0  # takes the place of the error

# %% code
del batch
gc.collect();

# %% en
# ## Exercise
#
# `bank` collects features of many batches for a search by similarity. They need no gradient, and nothing on the GPU takes them before the end.
# Write `collect` so that it returns the same features and the card never holds more than 16 MB; the next cell checks it.

# %% zh
# ## 练习
#
# `bank` 收集许多批数据的特征，用于相似度检索。它们不需要梯度，在结束之前 GPU 上也没有谁使用它们。
# 重写 `collect`，让它返回同样的特征，而显卡占用从不超过 16 MB；下一个单元格会检查它。

# %% code
def collect(model, batches):
    bank = []
    for batch in batches:
        bank.append(model[0][:2](batch).detach())
    return bank

# %% code
given = None
model = make_model()
with torch.no_grad():
    wanted = [model[0][:2](batch).cpu() for batch in batches(12)]
torch.cuda.reset_peak_memory_stats()
try:
    given = collect(model, batches(12))
    highest = torch.cuda.max_memory_allocated()
    same = len(given) == len(wanted) and all(
        one.shape == other.shape and torch.allclose(one.cpu(), other) for one, other in zip(given, wanted, strict=True)
    )
    right = same and highest <= 16 << 20
    print("Right." if right else f"Not yet: the card held {highest >> 20} MB, {'the same' if same else 'other'} features.")
except Exception as error:
    print(f"Not yet: {type(error).__name__}: {error}")
