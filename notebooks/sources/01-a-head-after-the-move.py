# %% en
# # 1 · A head replaced after `.to(device)`
#
# **Goal:** know what `.to(device)` moves and when, and why a look at one parameter is no check. **Time:** 15 minutes, without a GPU.
#
# **The story.** Chapter 6 of *Build a Large Language Model (From Scratch)* turns a small GPT into a spam classifier: load the model,
# replace its output layer by one with two outputs, train. The chapter's script moved the model to the GPU *before* it replaced
# the layer, and readers with a GPU met this error:
# [LLMs-from-scratch #172](https://github.com/rasbt/LLMs-from-scratch/issues/172) (fixed in
# [#173](https://github.com/rasbt/LLMs-from-scratch/pull/173)). On a laptop without a GPU the same script runs, so nobody sees it there.
#
# This notebook uses the book's real package, `llms-from-scratch` 1.0.19, and needs no GPU.

# %% zh
# # 1 · 在 `.to(device)` 之后替换的输出层
#
# **目标**：明白 `.to(device)` 移动什么、何时移动，以及为什么只看一个参数不算检查。**时间**：15 分钟，不需要 GPU。
#
# **故事。** 《从零构建大语言模型》第 6 章把一个小 GPT 改成垃圾短信分类器：加载模型，把输出层换成只有两个输出的新层，然后训练。
# 书里的脚本在替换输出层*之前*就把模型移到了 GPU，于是有 GPU 的读者遇到了这个错误：
# [LLMs-from-scratch #172](https://github.com/rasbt/LLMs-from-scratch/issues/172)（修复见
# [#173](https://github.com/rasbt/LLMs-from-scratch/pull/173)）。在没有 GPU 的笔记本电脑上，同一个脚本能正常运行，所以那里没人会发现它。
#
# 本笔记本使用书中的真实软件包 `llms-from-scratch` 1.0.19，不需要 GPU。

# %% code
%load_ext devtrace
from pathlib import Path

import torch

if not torch.cuda.is_available():
    %devtrace simulate cuda:1
device = torch.device("cuda:0")

try:
    from llms_from_scratch.ch04 import GPTModel
    from llms_from_scratch.ch06 import calc_loss_batch
except ImportError:
    needs = "pip install --no-deps llms-from-scratch==1.0.19 matplotlib pandas"
    raise SystemExit(f"This notebook needs the book's package: {needs}") from None

# %% en
# ## Run it and fail
#
# A GPT as in the book, only smaller. The order of the three steps below is that of the script: build, move, replace the head.

# %% zh
# ## 运行，然后失败
#
# 和书里一样的 GPT，只是更小。下面三步的顺序与脚本相同：构建、移动、替换输出层。

# %% code
torch.manual_seed(123)
config = dict(
    vocab_size=200, context_length=64, emb_dim=32, n_heads=4, n_layers=2, drop_rate=0.0, qkv_bias=True
)
model = GPTModel(config)

# %% code
model.to(device);

# %% code
model.out_head = torch.nn.Linear(in_features=config["emb_dim"], out_features=2)

# %% code raises-exception
%%devtrace first
messages = torch.randint(0, 200, (8, 64))
labels = torch.randint(0, 2, (8,))
loss = calc_loss_batch(messages, labels, model, device)

# %% en
# ## Read the report
#
# PyTorch's error (its last line) names an *argument* of the matrix product, and the innocent one: `mat1` is the activation, the
# layer's input, which is on the GPU as it should be. The report names the tensors: `model.out_head.weight` and `.bias` are on the CPU,
# all others of the model are on the GPU. **Created** is the line that made the new layer, **Missed by** the line that moved the model: cell
# `In[3]`, and the layer came in `In[4]`. The failing line itself, `self.out_head(x)`, is in the book's package, and there is nothing wrong
# with it; so the report also gives the line of yours that led there.

# %% zh
# ## 读报告
#
# PyTorch 的报错（最后一行）说的是矩阵乘法的一个*参数*，而且点名的是无辜的那个：`mat1` 是激活值，也就是这一层的输入，它在 GPU 上，正是它该在的地方。
# 报告点名的是张量：`model.out_head.weight` 和 `.bias` 在 CPU 上，模型的其他张量都在 GPU 上。
# **创建于**是创建新层的那一行，**被遗漏于**是移动模型的那一行：移动在 `In[3]`，新层却在 `In[4]` 才出现。
# 失败的那一行 `self.out_head(x)` 在书的软件包里，它本身没有任何错；所以报告还给出你自己的代码中走到那里的那一行。

# %% code
report = %devtrace report first
finding = report.findings[0]
culprit = finding.culprit
finding.cause, culprit.name, culprit.born.text, culprit.moved.text

# %% code folded
assert finding.rule == "device-mismatch"
assert finding.cause == "attached-after-move"
assert finding.devices == ("cuda:0", "cpu")
assert culprit.name == "model.out_head.weight"
assert culprit.device == "cpu"
assert culprit.shape == (2, 32)
assert "`model.out_head.weight`" in finding.message
assert "llms-from-scratch 1.0.19" in finding.message
assert Path(finding.site.file).name == "ch04.py"
assert finding.site.line == 103
assert finding.site.text == "self.out_head(x)"
assert culprit.born.text.startswith("model.out_head = torch.nn.Linear(")
assert culprit.moved.text == "model.to(device)"
assert "model.out_head" in finding.help and ".to(" in finding.help and finding.edits

# %% en
# ## Why PyTorch behaves so
#
# `model.to(device)` is no property of the model. It walks over the parameters that the model has *at that moment* and moves each one.
# A layer that is attached later is simply a new layer; `torch.nn.Linear(...)` makes it on the CPU, as always.
#
# The check that is usually recommended does not help: it looks at the first parameter only.

# %% zh
# ## PyTorch 为什么这样
#
# `model.to(device)` 不是模型的一种属性。它只是遍历模型*当时*拥有的参数，把它们逐个移过去。之后再挂上去的层就是一个全新的层，
# `torch.nn.Linear(...)` 照例在 CPU 上创建它。
#
# 网上常推荐的检查也发现不了这个问题：它只看第一个参数。

# %% code
assert next(model.parameters()).device == device  # passes, and yet the model is on two devices
{str(parameter.device) for parameter in model.parameters()}

# %% en
# ## The fix
#
# Move the model after the last change to it, as the book does today. Or put the new layer where the model is: `Linear(..., device=device)`,
# or the line that the report proposes.

# %% zh
# ## 修复
#
# 在最后一次修改模型之后再移动它，书中现在就是这样做的。也可以让新层一开始就在模型所在的设备上：`Linear(..., device=device)`，或者报告建议的那一行。

# %% code
model.to(device);

# %% code
%%devtrace fixed
loss = calc_loss_batch(messages, labels, model, device)
loss.backward()

# %% code
report = %devtrace report fixed
[finding.severity for finding in report.findings]

# %% code folded
assert not any(finding.severity in ("error", "warning") for finding in report.findings)

# %% en
# ## What would have caught it
#
# One line after the model is complete. It looks at *every* parameter, buffer and plain tensor, and its error says what the first
# parameter could not.

# %% zh
# ## 怎样提前发现
#
# 模型搭建完成之后写一行即可。它检查*每一个*参数、缓冲区和普通张量，只看第一个参数发现不了的，它都会说出来。

# %% code
import devtrace

devtrace.expect(model, device=device)
model.out_head = torch.nn.Linear(config["emb_dim"], 2)
try:
    devtrace.expect(model, device=device)
except devtrace.DeviceError as error:
    print(error)

# %% en
# ## Exercise
#
# The optimizer below was built before the head was replaced. Which tensors will `optimizer.step()` never change, although they are
# in the model? Write their names into `forgotten`, a list of strings; the next cell checks your answer.

# %% zh
# ## 练习
#
# 下面的优化器是在替换输出层之前创建的。哪些张量虽然在模型里，`optimizer.step()` 却永远不会更新？把它们的名字写进 `forgotten`（一个字符串列表），
# 下一个单元格会检查你的答案。

# %% code
model = GPTModel(config).to(device)
optimizer = torch.optim.AdamW(model.parameters())
model.out_head = torch.nn.Linear(config["emb_dim"], 2).to(device)

forgotten = []

# %% code
held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
answer = [name for name, parameter in model.named_parameters() if id(parameter) not in held]
said = sorted(name.removeprefix("model.") for name in forgotten)
print(
    "Right."
    if said == sorted(answer)
    else "Not yet: look for parameters that the optimizer does not hold."
)
