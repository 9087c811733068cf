# %% en
# # 0 · The first trace
#
# **Goal:** find a tensor that `.to(device)` missed, and know how to read each part of the report. **Time:** 15 minutes, without a GPU.
#
# A model on the GPU, one tensor left on the CPU, and an error that names neither the tensor nor the line that made it.
#
# On a machine without a GPU, devtrace *simulates* one: `cuda:0` below is then a pretended device that holds
# real values and refuses what CUDA refuses. On a machine with a GPU the same cells use the real one.

# %% zh
# # 0 · 第一次追踪
#
# **目标**：找到被 `.to(device)` 遗漏的张量，学会看报告的每一部分。**时间**：15 分钟，不需要 GPU。
#
# 模型在 GPU 上，却有一个张量留在 CPU；报错既不说是哪个张量，也不说它是哪一行创建的。
#
# 没有 GPU 的机器上，devtrace 会*模拟*一块：下面的 `cuda:0` 是一个假设备，里面是真实的数值，
# CUDA 拒绝的操作它也拒绝。有 GPU 的机器上，同样的单元格用的就是真 GPU。

# %% code
%load_ext devtrace
import torch
from torch import nn

if not torch.cuda.is_available():
    %devtrace simulate cuda:1
device = "cuda:0"

# %% en
# ## A small model with one mistake
#
# `Positions` adds a table of position values to its input. It makes the table once, when it is built. Read `__init__` and
# guess what `.to(device)` will do with `self.table` before you go on.

# %% zh
# ## 一个只有一处错误的小模型
#
# `Positions` 把一张位置表加到输入上，表在构造时创建一次。先读 `__init__`，猜一猜 `.to(device)` 会怎样处理 `self.table`，再往下看。

# %% code
class Positions(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.table = torch.linspace(0, 1, length * width).reshape(length, width)

    def forward(self, x):
        return x + self.table[: x.size(1)]

# %% en
# ## Run it and fail
#
# `%%devtrace` on the first line of a cell records every operation of the cell. It changes nothing else: the cell fails
# exactly as it would without it.

# %% zh
# ## 运行，然后失败
#
# 单元格第一行的 `%%devtrace` 会记录这个单元格里的每一个操作。除此之外它什么也不改：单元格照样失败，错误和没有它时一模一样。

# %% code raises-exception
%%devtrace first
model = nn.Sequential(nn.Embedding(100, 16), Positions(32, 16), nn.Linear(16, 4))
model.to(device)
words = torch.randint(0, 100, (2, 8)).to(device)
scores = model(words)

# %% en
# ## Read the report
#
# PyTorch's own message says only that two devices met. The report under the cell says the rest. From top to bottom:
#
# - **✗, the cell and the line**: where the operation failed, its name (`aten.add` is PyTorch's name for `+`), and the devices.
# - **The tensor**: `model.1.table`, as you would write it, and where the others are. devtrace does not believe the wording of
#   the error; it looks at who is the odd one out.
# - **Created**: the line that made the tensor.
# - **Missed by**: the `.to(device)` that should have taken it along.
# - **Fix**: what to change. In JupyterLab *Try* runs the cell with it, *Insert untried* puts it there as it is;
#   nothing is ever changed by itself.
#
# Its head counts operations and time, and names the devices. (As text, on GitHub for one, two last lines count operations by
# device, copies and bytes.)
#
# In JupyterLab the tabs below show the same trace as pictures. *Timeline*: one lane for each device, a box for each operation,
# an arrow for each copy. *Modules*: the model as nested boxes, filled by device. *Lines*: your source, with what each line
# caused. *Ops*: everything as a table. Pick the finding, and its operation, module and line light up everywhere. (Where
# JupyterLab is not at hand, as on GitHub, the timeline is a fixed picture.)
#
# All of it is there for programs, too: `%devtrace report NAME` gives the report of a cell as a Python object.
# Below a cell that reads a report there may be a folded one. It holds devtrace to what the text says; you need not open it.

# %% zh
# ## 读报告
#
# PyTorch 自己的报错只说两个设备碰到了一起。单元格下面的报告补上了其余的信息，从上到下是：
#
# - **✗、单元格和行号**：失败的操作在哪里、叫什么（`aten.add` 就是 `+`）、涉及哪些设备。
# - **张量**：`model.1.table`，写法和你在代码里的一样，并说明其他张量在哪里。devtrace 不轻信报错的措辞，而是看谁与众不同。
# - **创建于**：创建这个张量的那一行。
# - **被遗漏于**：本该带上它的那次 `.to(device)`。
# - **修复**：该怎么改。在 JupyterLab 里，*试运行*会带着它运行单元格，*直接插入（未试运行）*会原样把它写进单元格；任何改动都不会自动发生。
#
# 报告的开头写着操作数、用时和设备。（在 GitHub 等只显示文字的地方，最后两行是计数：每个设备上的操作数、拷贝次数和字节数。）
#
# 在 JupyterLab 里，下方的标签页用图展示同一次追踪。*时间线*：每个设备一条泳道，每个操作一个方块，每次拷贝一个箭头。
# *模块*：嵌套的方框表示模型，按设备填色。*代码行*：你的源码，旁边是每一行引起的操作。*运算*：全部操作的表格。
# 点选一条发现（finding），对应的操作、模块和源码行会在所有视图里同时亮起。（不在 JupyterLab 里时，例如在 GitHub 上，时间线是一张静态图。）
#
# 程序也能读到这一切：`%devtrace report NAME` 把一个单元格的报告作为 Python 对象交给你。
# 读报告的单元格下面可能有一个折叠的单元格：它用来保证 devtrace 的结果与正文所说的一致，不必展开。

# %% code
report = %devtrace report first
finding = report.findings[0]
culprit = finding.culprit
finding.rule, finding.cause, culprit.name, culprit.born.line, culprit.moved.line

# %% code folded
assert finding.rule == "device-mismatch"
assert finding.cause == "not-registered"
assert finding.devices == ("cuda:0", "cpu")
assert culprit.name == "model.1.table"
assert culprit.device == "cpu"
assert culprit.shape == (32, 16)
assert finding.site.text == "x + self.table[: x.size(1)]"
assert culprit.born.text.startswith("self.table = torch.linspace(")
assert culprit.moved.text == "model.to(device)"
assert 'self.register_buffer("table", torch.linspace(' in finding.help and finding.edits

# %% en
# ## Why PyTorch behaves so
#
# `model.to(device)` moves what the model has *registered*: parameters and buffers, at every depth. A plain tensor attribute is
# neither, so nobody knows of it. The lists below show it: the table is missing from both.

# %% zh
# ## PyTorch 为什么这样
#
# `model.to(device)` 会移动模型*注册*过的东西：任意深度的参数（parameter）和缓冲区（buffer）。普通的张量属性两者都不是，
# 所以没有人知道它的存在。下面两个列表可以看到：表不在其中任何一个里。

# %% code
[name for name, _ in model.named_parameters()], [name for name, _ in model.named_buffers()]

# %% en
# ## The fix
#
# `register_buffer` is made for this: a tensor that belongs to the module but is not trained. `persistent=False` keeps it out of
# checkpoints, since it can be computed again.
#
# In JupyterLab you need not type it. *Fix the notebook*, beside the fix of the report and in the sidebar, runs the notebook as far
# as this cell in a kernel of its own, finds every error on the way, and shows the changes. *Apply all changes* puts them
# into the cells (one undo takes them back), and *Run In[2] and In[3] again* runs what changed. Press it once, then undo
# to go on with the cells below, which do the same by hand.

# %% zh
# ## 修复
#
# `register_buffer` 正是为此准备的：属于模块、但不参与训练的张量。`persistent=False` 让它不进入检查点，因为它随时可以重新计算。
#
# 在 JupyterLab 里不必自己敲。报告中修复旁边和侧边栏里的*修复整个笔记本*会在另一个内核里把笔记本运行到这个单元格，找出途中的每个错误，
# 并列出改动。*应用全部改动*把它们写进单元格（撤销一次即可恢复），*重新运行 In[2] 和 In[3]* 会运行改动过的单元格。
# 按一次看看，然后撤销，接着做下面的单元格：它们用手工做同样的事。

# %% code
class Positions(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        table = torch.linspace(0, 1, length * width).reshape(length, width)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)]


model = nn.Sequential(nn.Embedding(100, 16), Positions(32, 16), nn.Linear(16, 4)).to(device)

# %% code
%%devtrace fixed
scores = model(words)

# %% code
report = %devtrace report fixed
report.findings

# %% code folded
assert not report.findings

# %% en
# ## What would have caught it
#
# `devtrace.expect` looks at every parameter, buffer *and* plain tensor of what you give it, at any depth, and names each one that
# is elsewhere. One line after building a model is enough.

# %% zh
# ## 怎样提前发现
#
# `devtrace.expect` 会检查你给它的所有东西：任意深度的每个参数、缓冲区，*以及*普通张量，并指出每一个不在该在之处的张量。
# 在建好模型之后写一行就够了。

# %% code
import devtrace

devtrace.expect(model, device=device)

# %% en
# ## Exercise
#
# The class below keeps its scale in a plain dictionary. Change it so that `.to(device)` takes the scale along. The last cell checks
# your answer: it moves the module to the device and back to the CPU, and allows no copy in `forward`.
#
# <details><summary>A hint</summary>
#
# Which of its tensors does `Scaled().named_buffers()` list? The section before this one has what helps.
#
# </details>

# %% zh
# ## 练习
#
# 下面的类把缩放系数放在一个普通字典里。修改它，让 `.to(device)` 能带上缩放系数。最后一个单元格检查你的答案：
# 它把模块移到设备上，再移回 CPU，并且不允许 `forward` 里有拷贝。
#
# <details><summary>提示</summary>
#
# `Scaled().named_buffers()` 会列出它的哪些张量？前面讲修复的一节里有办法。
#
# </details>

# %% code
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.constants = {"scale": torch.tensor([2.0, 3.0])}

    def forward(self, x):
        return x * self.constants["scale"]

# %% code
results = []
try:
    scaled = Scaled()
    for place in (device, "cpu"):  # there, and back
        scaled, ones = scaled.to(place), torch.ones(2, device=place)
        with devtrace.expect(place, copies=0):  # the same expectation, of a block of code
            result = scaled(ones)
        results.append(result.tolist())
    right = results == [[2.0, 3.0], [2.0, 3.0]]
    print("Right." if right else f"Not yet: it gives {results[-1]} and not [2.0, 3.0].")
except (RuntimeError, devtrace.DeviceError) as error:
    print("Not yet.", error)
