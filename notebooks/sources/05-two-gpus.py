# %% en
# # 5 · Two GPUs
#
# **The story.** A Keras layer on the torch backend is a `torch.nn.Module`, so `torch.nn.DataParallel` should spread it over two GPUs. It
# does not: [keras #20415](https://github.com/keras-team/keras/issues/20415). The error names `mat2`, an argument deep in the library.
#
# This notebook runs the real Keras 3.6.0 on two GPUs. If the machine has fewer, both are simulated.

# %% zh
# # 5 · 两块 GPU
#
# **故事。** torch 后端的 Keras 层就是一个 `torch.nn.Module`，所以 `torch.nn.DataParallel` 应当能把它分到两块 GPU 上。
# 实际上不行：[keras #20415](https://github.com/keras-team/keras/issues/20415)。报错里只有 `mat2`，一个藏在库深处的参数名。
#
# 本笔记本在两块 GPU 上运行真实的 Keras 3.6.0。机器上不足两块时，两块都是模拟的。

# %% code
%load_ext devtrace
import os

import torch

if torch.cuda.device_count() < 2:
    %devtrace simulate cuda:2

os.environ["KERAS_BACKEND"] = "torch"      # Keras chooses its backend and its device when it is imported: after simulate
try:
    import keras
except ImportError:
    raise SystemExit("This notebook needs Keras: pip install keras==3.6.0") from None
assert keras.__version__ == "3.6.0", f"got keras {keras.__version__}; this story happens with 3.6.0; pip install keras==3.6.0"

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
# belong there is the one on `cuda:0`: the kernel of a `Dense` layer. In the timeline the replicas are two lanes of their own.

# %% zh
# ## 读报告
#
# 碰到一起的是两块 GPU，没有 CPU 参与。谁是那个与众不同的？副本 1 的线程在 `cuda:1` 上工作，所以不该出现的是位于 `cuda:0` 的那个张量：
# 某个 `Dense` 层的 kernel。在时间线上，两个副本各占自己的泳道。

# %% code
report = %devtrace report first
finding = report.findings[0]
assert finding.rule == "device-mismatch" and set(finding.devices) == {"cuda:0", "cuda:1"}
assert finding.culprit.device == "cuda:0" and finding.culprit.name.endswith("dense/kernel")
finding.message

# %% en
# ## Why it happens
#
# `replicate` copies a module's *parameters* to each GPU and the rest of its attributes as they are. A Keras layer does keep its torch
# parameters where `replicate` finds them, but computes with something else: `self.kernel`, which leads to a `KerasVariable` that all
# replicas share, and that variable still holds the parameter on `cuda:0`.

# %% zh
# ## 为什么会这样
#
# `replicate` 会把模块的*参数*复制到每块 GPU，其余属性原样带过去。Keras 层确实把 torch 参数放在 `replicate` 找得到的地方，
# 但计算时用的是另一个东西：`self.kernel`，它指向所有副本共享的一个 `KerasVariable`，而这个变量仍然握着 `cuda:0` 上的参数。

# %% code
from torch.nn.parallel import replicate

dense = model.layers[0]
copies = replicate(model, [0, 1])
kernels = [copy.layers[0] for copy in copies]
assert kernels[0]._kernel is kernels[1]._kernel      # one variable, two replicas
kernels[1]._kernel.value.device

# %% en
# ## The way out
#
# `DistributedDataParallel`: one process for each GPU, and in each process everything is on one device; nothing is replicated in the first
# place. It is what PyTorch recommends for its own modules too. (Keras 3.12 and later do not fail here: they copy each weight to the
# device of the caller in *each* forward pass. That is quiet and slow, and devtrace's ledger shows the copies.)
#
# Below, what one process of two does: the model and its share of the batch on one device.

# %% zh
# ## 出路
#
# 用 `DistributedDataParallel`：每块 GPU 一个进程，进程内所有东西都在同一设备上，根本不需要复制模块。PyTorch 对自己的模块也是这样建议的。
# （Keras 3.12 及以后的版本在这里不再报错：它们在*每次*前向传播时把每个权重拷贝到调用者的设备。安静，但是慢，devtrace 的账本会列出这些拷贝。）
#
# 下面是两个进程之一所做的事：模型和它那一份批次都在同一设备上。

# %% code
%%devtrace fixed
outputs = model(inputs[:4])

# %% code
report = %devtrace report fixed
assert not any(finding.severity == "error" for finding in report.findings)
assert sum(row.d2d for row in report.ledger) == 0

# %% en
# ## What would have caught it
#
# A test on two simulated devices. It needs no GPU, so it can run wherever the other tests run:

# %% zh
# ## 怎样提前发现
#
# 在两块模拟设备上的测试。它不需要 GPU，所以其他测试能跑的地方它都能跑：

# %% code
plain = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Linear(16, 4)).to("cuda:0")
outputs = torch.nn.DataParallel(plain, device_ids=[0, 1])(inputs)
outputs.shape, outputs.device

# %% en
# ## Exercise
#
# The module below breaks under `DataParallel` for the same reason. Change one line of `__init__`, so that the next cell passes.

# %% zh
# ## 练习
#
# 下面的模块由于同样的原因在 `DataParallel` 下出错。修改 `__init__` 中的一行，让下一个单元格通过。

# %% code
class Shifted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shifts = [torch.nn.Parameter(torch.ones(4, device="cuda:0"))]

    def forward(self, x):
        return x + self.shifts[0]

# %% code
try:
    torch.nn.DataParallel(Shifted().to("cuda:0"), device_ids=[0, 1])(torch.zeros(4, 4, device="cuda:0"))
    print("Right.")
except RuntimeError:
    print("Not yet: a Python list hides parameters from replicate; there is a list that does not.")
