# %% en
# # 4 · Library code on the wrong device
#
# **Goal:** find a bug in a library, and compare devices in a way that can be true. **Time:** 20 minutes, without a GPU.
#
# **The story.** One morning in November 2024 *AI-Toolkit* stopped making sample pictures: same template, same configuration, new
# machine ([ai-toolkit #214](https://github.com/ostris/ai-toolkit/issues/214)). Its requirements named a library by its repository and not by
# a version, and that night the library had gained a bug
# ([diffusers #9895](https://github.com/huggingface/diffusers/issues/9895), taken back the next day in
# [#9896](https://github.com/huggingface/diffusers/pull/9896)). The issue does not say so itself; the day and the error fit.
#
# No release contains the bug, so the few lines are re-enacted here with the same names: the first code cell installs a stand-in for the
# library, of that day's version number, in a folder of its own. A second bug of the same project follows: an autoencoder that nobody
# moved, and a check that is never true.

# %% zh
# # 4 · 库代码用错了设备
#
# **目标**：找到库里的错误，并学会正确地比较设备。**时间**：20 分钟，不需要 GPU。
#
# **故事。** 2024 年 11 月的一个早晨，*AI-Toolkit* 突然无法生成样图了：模板没变，配置没变，只是换了一台新机器
# （[ai-toolkit #214](https://github.com/ostris/ai-toolkit/issues/214)）。它的依赖写的是某个库的代码仓库，而不是一个版本号，
# 而那个库恰好在前一晚引入了一个错误
# （[diffusers #9895](https://github.com/huggingface/diffusers/issues/9895)，第二天在
# [#9896](https://github.com/huggingface/diffusers/pull/9896) 中撤回）。issue 本身没有写明原因，但日期和错误都对得上。
#
# 没有任何正式版本包含这个错误，所以这里用同样的名字把那几行重现出来：第一个代码单元格在一个单独的文件夹里安装一个库的替身，版本号与当天的相同。
# 随后是同一项目的第二个错误：一个没人移动过的自编码器，以及一个永远不成立的检查。

# %% code
%load_ext devtrace
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

if not torch.cuda.is_available():
    %devtrace simulate cuda:1
device = "cuda:0"

LIBRARY = """
import torch


class FluxPipeline:
    def __init__(self, device, dtype):
        self._execution_device, self.dtype = device, dtype

    def _prepare_latent_image_ids(self, height, width, device, dtype):
        latent_image_ids = torch.zeros(height, width, 3, device=device, dtype=dtype)
        latent_image_ids[..., 1] = latent_image_ids[..., 1] + torch.arange(height)[:, None]
        latent_image_ids[..., 2] = latent_image_ids[..., 2] + torch.arange(width)[None, :]
        return latent_image_ids.reshape(height * width, 3)

    def prepare_latents(self, height, width):
        device, dtype = self._execution_device, self.dtype
        latents = torch.randn(1, 16, height * width, device=device, dtype=dtype)
        return latents, self._prepare_latent_image_ids(height, width, device, dtype)
"""
packages = Path(tempfile.mkdtemp()) / "site-packages"
files = {
    "diffusers/__init__.py": "",
    "diffusers/pipeline_flux.py": LIBRARY,
    "diffusers-0.32.0.dev0.dist-info/METADATA": "Metadata-Version: 2.1\nName: diffusers\nVersion: 0.32.0.dev0\n",
    "diffusers-0.32.0.dev0.dist-info/RECORD": "diffusers/__init__.py,,\ndiffusers/pipeline_flux.py,,\n",
}
for name, text in files.items():
    (packages / name).parent.mkdir(parents=True, exist_ok=True)
    (packages / name).write_text(text)
sys.path.insert(0, str(packages))

from diffusers.pipeline_flux import FluxPipeline

# %% en
# ## Run it and fail
#
# A model such as Flux turns noise (`latents`) into a picture step by step. It is also told where in the picture each piece lies, by row and column
# (`latent_image_ids`). AI-Toolkit asks the library for both:

# %% zh
# ## 运行，然后失败
#
# 像 Flux 这样的模型把噪声（`latents`，潜变量）一步步变成图片，同时还要知道每一块在图片的第几行、第几列（`latent_image_ids`）。
# AI-Toolkit 向库索取这两样东西：

# %% code raises-exception
%%devtrace ids
class FluxWithCFGPipeline(FluxPipeline):
    def sample(self, height, width):
        latents, latent_image_ids = self.prepare_latents(height, width)
        return latents, latent_image_ids

latents, ids = FluxWithCFGPipeline(device, torch.float32).sample(4, 6)

# %% en
# ## Read the report
#
# The tensor has no name, so the report calls it by its expression: `torch.arange(height)[:, None]`, made and used in one line. That line
# is not in this notebook: the report names the package and its version, and the line of yours from which it was entered.

# %% zh
# ## 读报告
#
# 这个张量没有名字，所以报告用它的表达式来称呼它：`torch.arange(height)[:, None]`，在同一行里创建、同一行里使用。
# 这一行不在笔记本里：报告指出它所在的软件包和版本，以及你的代码是从哪一行进去的。

# %% code
report = %devtrace report ids
finding = report.findings[0]
culprit = finding.culprit
culprit.name, culprit.born.text

# %% code folded
assert finding.rule == "device-mismatch"
assert finding.cause == "created-without-device"
assert set(finding.devices) == {"cpu", "cuda:0"}
assert culprit.name == "torch.arange(height)[:, None]"
assert culprit.device == "cpu"
assert culprit.shape == (4, 1)
assert finding.site.file.endswith("pipeline_flux.py")
assert finding.site.line == culprit.born.line == 11
assert "diffusers 0.32.0.dev0" in finding.message
assert "self.prepare_latents(height, width)" in finding.message
assert "torch.arange(height, device=device)" in finding.help
assert not finding.edits  # not your file to edit

# %% en
# ## Why PyTorch behaves so
#
# A factory (a function that makes a tensor, such as `torch.arange`) that is told no device uses the default one, which is the CPU. The
# line before, `torch.zeros(..., device=device)`, did say it, so its result is on the GPU, and the sum of the two is refused. The version
# before the bug made everything on the CPU and moved it once at the end; the change gave a device to one of three factories.
#
# When the line is not yours: pin a version that works (`diffusers==0.32.2` in the requirements, as AI-Toolkit did in the end), and report
# the line. Until then a subclass can mend it, with a device for both ranges; the second would have failed next.

# %% zh
# ## PyTorch 为什么这样
#
# 像 `torch.arange` 这样的工厂函数（创建张量的函数），如果不指定设备，就使用默认设备，也就是 CPU。前一行 `torch.zeros(..., device=device)`
# 指定了设备，结果在 GPU 上，于是两者相加被拒绝。出错之前的版本是全部在 CPU 上创建、最后一次性移动；那次修改只给三个工厂函数中的一个加上了设备。
#
# 如果出错的不是你的代码：固定到一个能用的版本（在依赖里写 `diffusers==0.32.2`，AI-Toolkit 后来正是这样做的），并把那一行报告给作者。
# 在那之前，可以用子类来修：给两个 `arange` 都加上设备，否则接下来失败的就是第二个。

# %% code
class MendedPipeline(FluxWithCFGPipeline):
    def _prepare_latent_image_ids(self, height, width, device, dtype):
        latent_image_ids = torch.zeros(height, width, 3, device=device, dtype=dtype)
        latent_image_ids[..., 1] = (
            latent_image_ids[..., 1] + torch.arange(height, device=device)[:, None]
        )
        latent_image_ids[..., 2] = (
            latent_image_ids[..., 2] + torch.arange(width, device=device)[None, :]
        )
        return latent_image_ids.reshape(height * width, 3)

# %% code
%%devtrace ids_fixed
latents, ids = MendedPipeline(device, torch.float32).sample(4, 6)

# %% code
report = %devtrace report ids_fixed
report.findings

# %% code folded
assert not report.findings

# %% en
# ## The autoencoder that was never moved
#
# The same project turns a control picture into latents with an autoencoder (`vae`, a network that packs pictures into small tensors) and joins
# them to the noise. It loads the autoencoder on the CPU. Before using it, it checks where it is and moves it if need be. Or so it seems
# ([ai-toolkit #742](https://github.com/ostris/ai-toolkit/pull/742)).

# %% zh
# ## 从未被移动的自编码器
#
# 同一个项目用自编码器（`vae`，把图片压缩成小张量的网络）把一张控制图变成潜变量，再和噪声拼在一起。自编码器是在 CPU 上加载的。
# 使用之前它会检查自编码器在哪里，必要时移动它。看上去是这样
# （[ai-toolkit #742](https://github.com/ostris/ai-toolkit/pull/742)）。

# %% code
class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(3, 16, 3, padding=1)

    @property
    def device(self):
        return self.encoder.weight.device

    def encode(self, image):
        return self.encoder(image.to(self.device)).flatten(2)


class StableDiffusion:
    def __init__(self, device, vae):
        self.device_torch, self.vae = torch.device(device), vae

    def encode_images(self, image):
        if self.vae.device == "cpu":
            self.vae.to(self.device_torch)
        return self.vae.encode(image)

    def get_noise_prediction(self, img_input, control):
        img_cond_seq = self.encode_images(control)
        img_input = torch.cat((img_input, img_cond_seq), dim=1)
        return img_input.mean()

# %% code raises-exception
%%devtrace vae
vae = AutoEncoder()
sd = StableDiffusion(device, vae)
sd.get_noise_prediction(latents, torch.rand(1, 3, 4, 6))

# %% en
# The odd one out is `img_cond_seq`, but it is only a messenger. The report follows it to what it was computed from: the weights of
# `vae`, which never left the CPU. So it moves the autoencoder and not the result, which would only silence the error and leave the
# autoencoder computing on the CPU.
#
# And the check before it? That is the second finding of the report. Ask Python, while the autoencoder is on the CPU:

# %% zh
# 与众不同的是 `img_cond_seq`，但它只是个信使。报告一直追到它由什么计算而来：`vae` 的权重，从未离开过 CPU。
# 所以报告建议移动的是自编码器，而不是计算结果；只移动结果能让报错消失，却会让自编码器一直在 CPU 上计算。
#
# 那么前面的检查呢？那就是报告的第二条发现。趁自编码器还在 CPU 上，问问 Python：

# %% code
report = %devtrace report vae
finding = report.findings[0]
culprit = finding.culprit
[check] = [finding for finding in report.findings if finding.rule == "device-comparison"]
vae.device, vae.device == "cpu", vae.device.type == "cpu", vae.device == torch.device("cpu")

# %% code folded
assert finding.rule == "device-mismatch"
assert finding.cause == "never-moved"
assert set(finding.devices) == {"cpu", "cuda:0"}
assert culprit.name.endswith("vae.encoder.weight") and "img_cond_seq" in culprit.names
assert finding.site.text == "torch.cat((img_input, img_cond_seq), dim=1)"
assert culprit.born.text == "self.encoder = nn.Conv2d(3, 16, 3, padding=1)"
assert "vae.to(" in finding.help and finding.edits
assert check.site.text == 'self.vae.device == "cpu"'
assert '`self.vae.device == "cpu"`' in check.message
assert ".type" in check.help

# %% en
# A `torch.device` is never equal to a string: the check is always false, so it moves nothing, and Python does not complain. Its `.type` is a
# string, and two devices can be compared. But a device with a number is not equal to one without, so `.type` is the better question:

# %% zh
# `torch.device` 永远不等于字符串：这个检查总是不成立，什么也不会移动，Python 也不会抱怨。它的 `.type` 才是字符串，两个设备之间也可以比较。
# 但带编号的设备不等于不带编号的设备，所以更应该问的是 `.type`：

# %% code
torch.device("cuda:0") == torch.device("cuda"), torch.device("cuda:0").type == torch.device("cuda").type

# %% code
def encode_images(self, image):
    if self.vae.device.type == "cpu":
        self.vae.to(self.device_torch)
    return self.vae.encode(image)


StableDiffusion.encode_images = encode_images

# %% code
%%devtrace vae_fixed
prediction = sd.get_noise_prediction(latents, torch.rand(1, 3, 4, 6))

# %% code
report = %devtrace report vae_fixed
[finding.severity for finding in report.findings]

# %% code folded
assert not any(finding.severity in ("error", "warning") for finding in report.findings)

# %% en
# ## What would have caught it
#
# One line before the first step. Now it passes, since the check has moved `vae`; a new autoencoder shows what it would have said.

# %% zh
# ## 怎样提前发现
#
# 在第一步之前写一行。现在它能通过，因为检查已经移动了 `vae`；换一个新的自编码器，就能看到它当初会说什么。

# %% code
import devtrace

devtrace.expect(vae, latents, ids, device=device)
try:
    devtrace.expect(AutoEncoder(), device=device)
except devtrace.DeviceError as error:
    print(error)

# %% en
# ## Exercise
#
# Rewrite the condition so that it is true exactly when the module is on any CUDA device. The next cell checks it.

# %% zh
# ## 练习
#
# 改写这个条件，使它恰好在模块位于任意一个 CUDA 设备上时为真。下一个单元格会检查。

# %% code
def on_cuda(module):
    return module.device == "cuda"

# %% code
class Elsewhere(AutoEncoder):
    device = torch.device("cuda:1")  # says so even where there is no second GPU


asked = {
    "cuda:0": vae,
    "cuda:1": Elsewhere().to(device),
    "cpu": AutoEncoder(),
    "meta": AutoEncoder().to("meta"),
}
wrong = [name for name, module in asked.items() if bool(on_cuda(module)) != name.startswith("cuda")]
print(f"Not yet: it is wrong about a module on {', '.join(wrong)}." if wrong else "Right.")
