# %% en
# # 3 · A batch half moved
#
# **Goal:** move a batch whole, and see what DDP hides and what pinned memory does. **Time:** 20 minutes, without a GPU.
#
# **The story.** *Recognize Anything* tags pictures. Its fine-tuning script takes four tensors and a caption out of the data loader and
# moves two of the tensors to the GPU. The loss then meets a label on the CPU:
# [recognize-anything #155](https://github.com/xinyu1205/recognize-anything/issues/155). The authors probably never saw it: their
# script trains with `DistributedDataParallel` by default, which moves the inputs of `forward` by itself.
#
# The package is not on PyPI, so the loop and the loss are re-enacted here with the same names and the same mistake.

# %% zh
# # 3 · 只移动了一半的批次
#
# **目标**：完整地移动一个批次，并看清 DDP 掩盖了什么、锁页内存有什么用。**时间**：20 分钟，不需要 GPU。
#
# **故事。** *Recognize Anything* 给图片打标签。它的微调脚本从 DataLoader 里取出四个张量和一段文字，却只把其中两个张量移到 GPU。
# 于是损失函数遇到了一个还在 CPU 上的标签：
# [recognize-anything #155](https://github.com/xinyu1205/recognize-anything/issues/155)。作者自己很可能从没见过这个错误：
# 他们的脚本默认用 `DistributedDataParallel` 训练，而它会自动移动 `forward` 的输入。
#
# 这个软件包不在 PyPI 上，所以这里用同样的名字、同样的错误重现了训练循环和损失函数。

# %% code
%load_ext devtrace
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

if not torch.cuda.is_available():
    %devtrace simulate cuda:1
device = torch.device("cuda:0")

# %% code
class Pictures(Dataset):
    """Pictures in two sizes, a caption, the tags that are true of each, and the tags found in the caption."""

    def __len__(self):
        return 10

    def __getitem__(self, at):
        torch.manual_seed(at)
        image, image_224 = torch.rand(3, 16, 16), torch.rand(3, 8, 8)
        return image, image_224, f"picture {at}", torch.randint(0, 2, (20,)), torch.randint(0, 2, (20,))


class AsymmetricLoss(nn.Module):
    def forward(self, x, y):
        x_sigmoid = torch.sigmoid(x)
        los_pos = y * torch.log(x_sigmoid.clamp(min=1e-8))
        los_neg = (1 - y) * torch.log((1 - x_sigmoid).clamp(min=1e-8))
        return -(los_pos + los_neg).sum()


class RAM(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual_encoder = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.fc = nn.Linear(8, 20)
        self.tagging_loss_function = AsymmetricLoss()

    def forward(self, image, caption, image_tag, parse_tag):
        logits = self.fc(self.visual_encoder(image))
        self.tags = parse_tag.cpu().numpy()  # only ever read on the CPU
        return self.tagging_loss_function(logits, image_tag)


def train_ram(model, data_loader, optimizer):
    for image, image_224, caption, image_tag, parse_tag in data_loader:
        optimizer.zero_grad()
        image = image.to(device, non_blocking=True)
        image_224 = image_224.to(device, non_blocking=True)
        loss = model(image, caption, image_tag, parse_tag)
        loss.backward()
        optimizer.step()


loader = DataLoader(Pictures(), batch_size=2)

# %% en
# ## Run it and fail

# %% zh
# ## 运行，然后失败

# %% code raises-exception
%%devtrace first
torch.manual_seed(0)
model = RAM().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
train_ram(model, loader, optimizer)

# %% en
# ## Read the report
#
# The failing line says `y`, a name inside the loss. The report follows it back: it is the `image_tag` of the training loop, it came
# out of the loader there, and its neighbour `image` was moved while it was not. Below that neighbour is where the fix belongs.
# (`parse_tag` is on the CPU too, and the report does not speak of it: it is only read there.)

# %% zh
# ## 读报告
#
# 失败的那一行里写的是 `y`，一个损失函数内部的名字。报告把它追溯回去：它就是训练循环里的 `image_tag`，从 DataLoader 里出来之后，
# 它的邻居 `image` 被移动了，它却没有。修复就该写在邻居那一行下面。（`parse_tag` 也在 CPU 上，报告却没有提它：它只在 CPU 上被读取。）

# %% code
report = %devtrace report first
finding = report.findings[0]
culprit = finding.culprit
culprit.names

# %% code folded
assert finding.rule == "device-mismatch"
assert finding.cause == "never-moved"
assert set(finding.devices) == {"cpu", "cuda:0"}
assert culprit.name == "image_tag"
assert culprit.device == "cpu"
assert culprit.shape == (2, 20)
assert "y" in culprit.names
assert finding.site.text.startswith("y * torch.log(")
assert culprit.born.text.startswith("for image, image_224, caption, image_tag")
assert culprit.moved.text == "image = image.to(device, non_blocking=True)"
assert "image_tag = image_tag.to(device, non_blocking=True)" in finding.help
assert finding.edits

# %% en
# ## Why PyTorch behaves so
#
# `.to(device)` gives a new tensor; it touches nothing but the one that it is called on. A tuple from a loader has no `.to`, so each
# item is moved by a line of its own, and a forgotten line is legal until something on the GPU meets the item.
#
# `DistributedDataParallel` (DDP) trains with one process for each GPU and adds up their gradients. It hides the mistake: its `forward` first
# moves all tensors among the arguments to its own device. The same loop, forgotten line and all, in a DDP job of one process:

# %% zh
# ## PyTorch 为什么这样
#
# `.to(device)` 返回一个新张量，只影响调用它的那一个。DataLoader 给出的元组没有 `.to`，每一项都要单独写一行来移动；漏掉一行并不违法，
# 直到 GPU 上的某个东西碰到它。
#
# `DistributedDataParallel`（DDP）为每块 GPU 开一个进程来训练，再把梯度加起来。它会掩盖这个错误：它的 `forward` 会先把参数中的所有张量移到自己的设备上。
# 同一个循环，同样漏掉那一行，放进只有一个进程的 DDP 任务里：

# %% code
%%devtrace ddp
from torch import distributed

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
train_ram(nn.parallel.DistributedDataParallel(model, device_ids=[0]), loader, optimizer)
distributed.destroy_process_group()

# %% code
ddp = %devtrace report ddp
moved = {row.site.text: row.h2d for row in ddp.ledger if row.h2d}
moved

# %% code folded
assert not any(finding.severity == "error" for finding in ddp.findings)
assert moved["model(image, caption, image_tag, parse_tag)"] == 10  # two tensors in five batches
assert any("DistributedDataParallel" in finding.message for finding in ddp.findings)

# %% en
# It runs, and the report warns. The ledger (devtrace's count for each line of yours; here, copies to a device) shows why: the call of
# the model, which should copy nothing, moved the two forgotten tensors of each of the five batches. So the script works under DDP and fails
# without it. (The other warning is about `parse_tag`; it comes next.)

# %% zh
# 它能跑，但报告给出警告。账本（ledger，devtrace 对你的每一行代码的计数；这里是拷贝到设备的次数）说明了原因：调用模型那一行本不该拷贝任何东西，
# 却在五个批次里各移动了两个被漏掉的张量。所以这个脚本在 DDP 下能跑，不用 DDP 就失败。（另一条警告说的是 `parse_tag`，下面就讲。）

# %% en
# ## The fix, and one that is only half right
#
# The issue proposes to move *both* tags. Look at what each line costs: `parse_tag` is only read on the CPU, so moving it makes a trip to
# the GPU and back in every step.

# %% zh
# ## 修复，以及一个只对了一半的修复
#
# issue 里建议把*两个*标签都移过去。看看每一行的代价：`parse_tag` 只在 CPU 上被读取，移动它意味着每一步都白白往返一次 GPU。

# %% code
def train_ram(model, data_loader, optimizer):
    for image, image_224, caption, image_tag, parse_tag in data_loader:
        optimizer.zero_grad()
        image = image.to(device, non_blocking=True)
        image_tag = image_tag.to(device, non_blocking=True)
        parse_tag = parse_tag.to(device, non_blocking=True)
        loss = model(image, caption, image_tag, parse_tag)
        loss.backward()
        optimizer.step()

# %% code
%%devtrace both
train_ram(model, loader, optimizer)

# %% code
both = %devtrace report both
back = {row.site.text: row.d2h for row in both.ledger if row.d2h}
[warning] = [finding for finding in both.findings if finding.severity == "warning"]
back

# %% code folded
assert not any(finding.severity == "error" for finding in both.findings)
assert back == {"parse_tag.cpu()": 5}
assert warning.rule == "device-to-host-copy"
assert warning.site.text == "parse_tag.cpu()"
assert warning.count == 5
assert "`parse_tag" in warning.message and warning.help

# %% en
# The warning says it in words, and the ledger counts the way back: `parse_tag.cpu()` copies from the GPU in each of the five steps. Without
# the line for `parse_tag` nothing is copied back.

# %% zh
# 警告用文字说明了这一点，账本则数出了回程：`parse_tag.cpu()` 在五步中每一步都从 GPU 拷贝一次。去掉 `parse_tag` 那一行，就没有东西需要拷贝回来。

# %% code
def train_ram(model, data_loader, optimizer):
    for image, image_224, caption, image_tag, parse_tag in data_loader:
        optimizer.zero_grad()
        image = image.to(device, non_blocking=True)
        image_tag = image_tag.to(device, non_blocking=True)
        loss = model(image, caption, image_tag, parse_tag)
        loss.backward()
        optimizer.step()

# %% code
%%devtrace fixed
train_ram(model, loader, optimizer)

# %% code
report = %devtrace report fixed
[finding.severity for finding in report.findings]

# %% code folded
assert not any(finding.severity in ("error", "warning") for finding in report.findings)
assert sum(row.d2h for row in report.ledger) == 0

# %% en
# ## Pinned memory and `non_blocking`
#
# `non_blocking=True` lets a copy run beside the computation, but only from *pinned* memory, which the operating system may not move
# about. From ordinary memory it is an ordinary copy, and nobody says so. A loader pins its batches with `pin_memory=True`. The trace notes
# both for each copy: the timeline counts the pinned ones in its last line (compare the two above and below), and in JupyterLab says it of the
# copy under the pointer.

# %% zh
# ## 锁页内存与 `non_blocking`
#
# `non_blocking=True` 允许拷贝与计算同时进行，但前提是数据在*锁页*（pinned）内存里，也就是操作系统不会挪动的内存。
# 从普通内存出发，它就只是一次普通的拷贝，而且没有任何提示。给 DataLoader 加上 `pin_memory=True`，它就会锁住每个批次。
# 追踪会为每次拷贝记下这两点：时间线的最后一行给出锁页拷贝的次数（比较上面和下面的两张图），在 JupyterLab 里，指针指着的拷贝也会注明。

# %% code
pinned = DataLoader(Pictures(), batch_size=2, pin_memory=True)

# %% code
%%devtrace pinned
train_ram(model, pinned, optimizer)

# %% code
before = %devtrace report fixed
after = %devtrace report pinned
copies = [
    [(copy.non_blocking, copy.pinned) for copy in report.trace.copies] for report in (before, after)
]
copies[0][:2], copies[1][:2]  # (non_blocking, pinned) of the first two copies of each

# %% code folded
assert copies == [10 * [(1, 0)], 10 * [(1, 1)]]

# %% en
# ## What would have caught it

# %% zh
# ## 怎样提前发现

# %% code
import devtrace

batch = next(iter(loader))
try:
    devtrace.expect(model, batch[0].to(device), batch[3], device=device)
except devtrace.DeviceError as error:
    print(error)

# %% en
# ## Exercise
#
# Complete `to_device` so that it gives back the batch with every tensor on the device, however deep it lies in lists, tuples and
# dictionaries, and all else as it was. The next cell checks it.

# %% zh
# ## 练习
#
# 补全 `to_device`，让它返回同样的批次，其中每个张量都在指定设备上，无论它在列表、元组、字典的多深处，其他东西保持不变。下一个单元格会检查。

# %% code
def to_device(batch, device):
    return batch

# %% code
nested = {
    "image": torch.zeros(2),
    "extra": [(torch.ones(3), "text"), {"valid": torch.ones(2, dtype=torch.bool)}],
}
try:
    moved = to_device(nested, device)
    devtrace.expect(moved, device=device)
    (ones, text), more = moved["extra"]
    same = (
        moved["image"].tolist() == [0, 0]
        and ones.tolist() == [1, 1, 1]
        and more["valid"].tolist() == [True, True]
    )
    print("Right." if same and text == "text" else "Not yet: something in the batch has changed.")
except devtrace.DeviceError as error:
    print("Not yet.", error)
except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
    print(f"Not yet: {type(error).__name__}: {error}")
