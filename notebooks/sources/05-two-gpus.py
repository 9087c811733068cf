# %% en
# # 5 · Two GPUs
#
# **Goal:** know what DataParallel copies, and why replicas may share a variable. **Time:** 20 minutes, without a GPU.
#
# **The story.** A Keras layer on the torch backend is a `torch.nn.Module`, so `torch.nn.DataParallel` should spread it over two GPUs. It
# does not: [keras #20415](https://github.com/keras-team/keras/issues/20415). The error names `mat2`, an argument deep in the library.
# A *layer*'s weights are called its kernel (the matrix) and its bias in Keras.
#
# This notebook runs the real Keras 3.6.0 on two GPUs. If the machine has fewer, both are simulated.

# %% zh
# # 5 · 两块 GPU
#
# **目标**：明白 DataParallel 复制什么，以及为什么副本会共用一个变量。**时间**：20 分钟，不需要 GPU。
#
# **故事。** torch 后端的 Keras 层就是一个 `torch.nn.Module`，所以 `torch.nn.DataParallel` 应当能把它分到两块 GPU 上。
# 实际上不行：[keras #20415](https://github.com/keras-team/keras/issues/20415)。报错里只有 `mat2`，一个藏在库深处的参数名。
# 在 Keras 里，一层的权重叫作 kernel（矩阵）和 bias（偏置）。
#
# 本笔记本在两块 GPU 上运行真实的 Keras 3.6.0。机器上不足两块时，两块都是模拟的。

# %% code
%load_ext devtrace
import os
from pathlib import Path

import torch

if torch.cuda.device_count() < 2:
    %devtrace simulate cuda:2

# Keras chooses its backend and its device when it is imported, so this comes after simulate.
os.environ["KERAS_BACKEND"] = "torch"
try:
    import keras
except ImportError:
    raise SystemExit("This notebook needs Keras: pip install keras==3.6.0") from None
if keras.__version__ != "3.6.0":
    raise SystemExit(f"This story needs Keras 3.6.0, not {keras.__version__}: pip install keras==3.6.0")

# %% en
# ## Run it and fail
#
# `DataParallel` does four things in each forward pass: *scatter* the batch over the devices, *replicate* the module onto each,
# *apply* each replica in a thread of its own, *gather* the results.

# %% zh
# ## 运行，然后失败
#
# 每次前向传播，`DataParallel` 做四件事：把批次*分发*（scatter）到各设备，把模块*复制*（replicate）到各设备，
# 在各自的线程里*执行*（apply）每个副本，最后*汇总*（gather）结果。

# %% code
torch.manual_seed(0)
model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(16), keras.layers.Dense(4)])
net = torch.nn.DataParallel(model, device_ids=[0, 1])
inputs = torch.randn(8, 32, device="cuda:0")

# %% code raises-exception
%%devtrace first
outputs = net(inputs)

# %% en
# ## Read the report
#
# Two GPUs meet, and no CPU is involved. Who is the odd one out? The thread of replica 1 works on `cuda:1`, so the tensor that does not
# belong there is the one on `cuda:0`: the kernel of a `Dense` layer. The report also says why it is there: all replicas share it through one
# variable. In the timeline the replicas are lanes of their own, since each runs in a thread of its own.

# %% zh
# ## 读报告
#
# 碰到一起的是两块 GPU，没有 CPU 参与。谁是那个与众不同的？副本 1 的线程在 `cuda:1` 上工作，所以不该出现的是位于 `cuda:0` 的那个张量：
# 某个 `Dense` 层的 kernel。报告还说明了它为什么在那里：所有副本通过同一个变量共享它。在时间线上，每个副本在自己的线程里运行，所以各占自己的泳道。

# %% code
report = %devtrace report first
finding = report.findings[0]
culprit = finding.culprit
places = {(Path(site.file).name, site.line) for site in culprit.chain}
culprit.name, culprit.device, finding.help

# %% code folded
assert finding.rule == "device-mismatch" and finding.devices == ("cuda:1", "cuda:0")
assert culprit.name == "sequential/dense/kernel"
assert culprit.device == "cuda:0"
assert culprit.shape == (32, 16)
assert finding.site.text == "torch.matmul(x1, x2)" and ("dense.py", 144) in places
assert "self._torch_params = torch.nn.ParameterDict(" in culprit.born.text
assert "replica 1" in finding.message
assert "`Variable`" in finding.message
assert "keras 3.6.0" in finding.message
assert "DistributedDataParallel" in finding.help

# %% en
# ## Why it happens
#
# `replicate` copies a module's *parameters* to each GPU and the rest of its attributes as they are. A Keras layer does keep its torch
# parameters where `replicate` finds them, but computes with something else: `self.kernel`, which leads to a variable of Keras that all
# replicas share, and that variable still holds the parameter on `cuda:0`. Below, for replica 1: what it computes with, and the copy that
# was made for it and is never used.

# %% zh
# ## 为什么会这样
#
# `replicate` 会把模块的*参数*复制到每块 GPU，其余属性原样带过去。Keras 层确实把 torch 参数放在 `replicate` 找得到的地方，
# 但计算时用的是另一个东西：`self.kernel`，它指向所有副本共享的一个 Keras 变量，而这个变量仍然握着 `cuda:0` 上的参数。
# 下面对副本 1 打印：它计算时用的，以及专门为它复制、却从未被用到的那一份。

# %% code
from torch.nn.parallel import replicate

first, second = replicate(model.layers[0], [0, 1])  # a Dense layer, once for each GPU
copied = next(iter(second._torch_params.values()))
first is second, first._kernel is second._kernel, second._kernel.value.device, copied.device

# %% code folded
assert first is not second
assert first._kernel is second._kernel 

# %% en
# ## Newer versions do not fail, and copy
#
# Keras 3.12 and later take the value out of the variable and move it to the device of the thread that asks, in *each* forward pass. Two
# versions of Keras do not fit into one notebook, so the next cell gives 3.6.0 that change. (With the real 3.15.1 devtrace counts the same
# copies.)

# %% zh
# ## 新版本不再报错，而是拷贝
#
# Keras 3.12 及以后的版本会从变量中取出值，并移到正在使用它的线程所在的设备，*每次*前向传播都这样做。
# 一个笔记本装不下两个版本的 Keras，所以下一个单元格把这处改动加到 3.6.0 上。（用真正的 3.15.1，devtrace 数出的拷贝相同。）

# %% code
from keras.src.backend.torch import core
from keras.src.backend.torch import numpy as keras_numpy

older = keras_numpy.convert_to_tensor


def newer(x, dtype=None, sparse=None):
    if isinstance(x, core.Variable):
        x = x.value.to(core.get_device())
    return older(x, dtype, sparse)


keras_numpy.convert_to_tensor = newer

# %% code
%%devtrace newer
for step in range(3):
    outputs = net(inputs)

# %% code
report = %devtrace report newer
crossings = {row.site.text: row.d2d for row in report.ledger if row.d2d}
keras_numpy.convert_to_tensor = older
crossings

# %% code folded
assert not any(finding.severity == "error" for finding in report.findings)
assert crossings == {"net(inputs)": 18, "x.value.to(core.get_device())": 12}

# %% en
# The ledger (devtrace's count for each line; here, copies from one GPU to the other) holds both. `net(inputs)` made six copies in each of three
# passes, all of them `DataParallel`'s: two kernels, two biases, half of the batch, and the result on its way back. `x.value.to(...)`, the new
# line of Keras, made four more: the same kernels and biases once again, because the copies that `DataParallel` made are not used.
#
# ## The way out
#
# `DistributedDataParallel` (DDP): one process for each GPU. In each process everything is on one device, so no module is replicated; after
# the backward pass the processes add up their gradients. It is what PyTorch recommends for its own modules too. Below, what one process
# of such a job does with its half of the batch (here the job has only this one).

# %% zh
# 账本（ledger，devtrace 对每一行代码的计数；这里是从一块 GPU 到另一块的拷贝）两者都列出来了。`net(inputs)` 在三次前向传播中每次拷贝六次，
# 都是 `DataParallel` 做的：两个 kernel、两个 bias、半个批次，以及送回来的结果。`x.value.to(...)` 是 Keras 新加的那一行，每次又多拷贝四次：
# 同样的 kernel 和 bias 再拷一遍，因为 `DataParallel` 拷好的那些没有被用到。
#
# ## 出路
#
# 用 `DistributedDataParallel`（DDP）：每块 GPU 一个进程。进程内所有东西都在同一设备上，不需要复制模块；反向传播之后，各进程把梯度加起来。
# PyTorch 对自己的模块也是这样建议的。下面是这种任务中的一个进程对它那一半批次所做的事（这里的任务只有这一个进程）。

# %% code
%%devtrace fixed
from torch import distributed

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
outputs = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])(inputs[:4])
outputs.sum().backward()
distributed.destroy_process_group()

# %% code
report = %devtrace report fixed
{str(parameter.grad.device) for parameter in model.parameters()}

# %% code folded
assert not any(finding.severity in ("error", "warning") for finding in report.findings)
assert sum(row.d2d for row in report.ledger) == 0

# %% en
# ## What would have caught it
#
# A test on two simulated devices. It needs no GPU, so it can run wherever the other tests run. A model of plain `torch.nn` layers passes
# it, the Keras model does not:

# %% zh
# ## 怎样提前发现
#
# 在两块模拟设备上的测试。它不需要 GPU，所以其他测试能跑的地方它都能跑。由普通 `torch.nn` 层组成的模型能通过，Keras 模型通不过：

# %% code
def runs_on_two(module):
    try:
        torch.nn.DataParallel(module, device_ids=[0, 1])(inputs)
    except RuntimeError:
        return False
    return True


plain = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Linear(16, 4)).to("cuda:0")
runs_on_two(plain), runs_on_two(model)

# %% code folded
assert runs_on_two(plain) and not runs_on_two(model)

# %% en
# ## Exercise
#
# The module below breaks under `DataParallel` for the same reason. Change it so that its shift goes along to each GPU as a parameter of the
# module; one line of `__init__` is enough. The next cell checks it.
#
# <details><summary>A hint</summary>
#
# A Python list hides parameters. `torch.nn` has a list that does not.
#
# </details>

# %% zh
# ## 练习
#
# 下面的模块由于同样的原因在 `DataParallel` 下出错。修改它，让偏移量作为模块的参数被带到每块 GPU 上；只改 `__init__` 中的一行就够了。下一个单元格会检查。
#
# <details><summary>提示</summary>
#
# Python 列表会藏起参数。`torch.nn` 里有一种不会藏起参数的列表。
#
# </details>

# %% code
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shifts = [torch.nn.Parameter(torch.ones(4, device="cuda:0"))]

    def forward(self, x):
        return x + self.shifts[0]

# %% code
shifted = Shifted().to("cuda:0")
try:
    result = torch.nn.DataParallel(shifted, device_ids=[0, 1])(torch.zeros(4, 4, device="cuda:0"))
    if not list(shifted.parameters()):
        print("Not yet: the shift is no parameter of the module, so no optimizer would train it.")
    else:
        print(
            "Right." if result.tolist() == 4 * [4 * [1.0]] else "Not yet: the shift should still add 1."
        )
except RuntimeError as error:
    print("Not yet:", str(error).splitlines()[-1])
