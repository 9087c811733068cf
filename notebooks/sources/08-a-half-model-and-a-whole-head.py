# %% en
# # 8 · A half model and a whole head
#
# **Goal:** find which layer a cast has missed, and what computes in float64 unseen. **Time:** 10 minutes, without a GPU.
#
# **The story.** A backbone is loaded, cast to half precision to save memory, and gets a new head. Everything is on the right device, and
# the first call fails: "mat1 and mat2 must have the same dtype". It is the neighbour of the device error of notebook 1: `.half()` and
# `.to(dtype)` walk over the parameters that a model has *at that moment*, just as `.to(device)` does. It fails on every machine, and this
# notebook needs no GPU.

# %% zh
# # 8 · 半精度的模型，单精度的输出层
#
# **目标**：找到类型转换遗漏的层，以及悄悄用 float64 计算的运算。**时间**：10 分钟，不需要 GPU。
#
# **故事。** 加载一个骨干网络，为节省内存转换为半精度，再接上一个新的输出层。设备都没有错，第一次调用却失败了：
# "mat1 and mat2 must have the same dtype"。它与笔记本 1 的设备错误是近邻：`.half()` 和 `.to(dtype)` 只遍历模型*当时*拥有的参数，
# 与 `.to(device)` 一样。它在任何机器上都会失败，本笔记本不需要 GPU。

# %% code
%load_ext devtrace
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def backbone():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU())

# %% en
# ## Run it and fail

# %% zh
# ## 运行，然后失败

# %% code raises-exception
%%devtrace first
model = backbone()
model.to(torch.bfloat16)
model.append(nn.Linear(32, 4))
x = torch.randn(8, 16, dtype=torch.bfloat16)
scores = model(x)

# %% en
# ## Read the report
#
# PyTorch names two arguments of a product and neither tensor. The report does: `model.4.weight` and `.bias` are float32, everything else
# of `model` is bfloat16. **Created** is the line that made the head, **Missed by** the cast that ran before it.

# %% zh
# ## 读报告
#
# PyTorch 只说了矩阵乘法的两个参数，没有说是哪个张量。报告说了：`model.4.weight` 和 `.bias` 是 float32，`model` 的其余张量都是 bfloat16。
# **创建于**是创建输出层的那一行，**被遗漏于**是在它之前运行的类型转换。

# %% code
report = %devtrace report first
finding = report.findings[0]
finding.cause, finding.culprit.name, finding.culprit.born.text, finding.culprit.moved.text

# %% code folded
assert (finding.rule, finding.cause) == ("dtype-mismatch", "attached-after-cast")
assert (finding.culprit.name, finding.culprit.dtype) == ("model.4.weight", "float32")
assert finding.culprit.moved.text.startswith("model.to(torch.bfloat16)")

# %% en
# ## The fix
#
# Cast again once the model is complete, or make the head in the dtype of the backbone: `nn.Linear(32, 4, dtype=model[0].weight.dtype)`.

# %% zh
# ## 修复
#
# 在模型搭建完成之后再转换一次；或者让输出层一开始就用骨干网络的类型：`nn.Linear(32, 4, dtype=model[0].weight.dtype)`。

# %% code
model.to(torch.bfloat16);

# %% code
%%devtrace fixed
scores = model(x)
scores.float().square().mean().backward()

# %% code
report = %devtrace report fixed
[finding.severity for finding in report.findings]

# %% code folded
assert not any(finding.severity in ("error", "warning") for finding in report.findings)

# %% en
# ## What fails nowhere and costs memory
#
# numpy computes in float64, and `torch.from_numpy` keeps that. Here the loss takes both dtypes without a word: its result is float64, and
# so is all that is computed from it. No error, and no finding: the figure of dtypes shows what computes in float64.

# %% zh
# ## 什么都不报错，却占内存
#
# numpy 用 float64 计算，`torch.from_numpy` 会保留它。这里的损失函数默默接受两种类型：结果是 float64，由它计算的一切也是。没有错误，也没有任何发现：
# 按类型画出的图会显示哪些运算用了 float64。

# %% code
%%devtrace targets
model = backbone()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
goals = torch.from_numpy(np.ones((8, 32)))
for step in range(5):
    optimizer.zero_grad()
    F.mse_loss(model(torch.randn(8, 16)), goals).backward()
    optimizer.step()

# %% code
report = %devtrace report targets
figure = report.figure("dtypes")
sorted(figure.data[0].y)

# %% en
# ## Exercise
#
# The next model is half with a whole head as well, and its head is meant to be float32: scores in half precision are too coarse. Which
# cast makes it work *without* changing a weight? Write the function `score`, which takes `net`, `head` and `x` and returns float32 scores;
# the next cell checks it.

# %% zh
# ## 练习
#
# 下一个模型同样是半精度骨干加单精度输出层，而且输出层本来就该是 float32：半精度的分数太粗糙。哪一次转换能让它工作，又*不改变*任何权重？
# 写出函数 `score`，它接受 `net`、`head` 和 `x`，返回 float32 的分数；下一个单元格会检查它。

# %% code
net, head = backbone().to(torch.bfloat16), nn.Linear(32, 4)


def score(net, head, x):
    return head(net(x))

# %% code
kept = [parameter.dtype for module in (net, head) for parameter in module.parameters()]
try:
    given = score(net, head, x)
    wanted = head(net(x).float())
    after = [parameter.dtype for module in (net, head) for parameter in module.parameters()]
    if after != kept:
        print("Not yet: the dtype of a weight has changed.")
    elif given.dtype != torch.float32:
        print(f"Not yet: the scores are {given.dtype}.")
    else:
        print("Right." if torch.equal(given, wanted) else "Not yet: the scores are too coarse.")
except Exception as error:
    print(f"Not yet: {type(error).__name__}: {error}")
