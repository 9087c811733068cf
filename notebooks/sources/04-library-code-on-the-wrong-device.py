# %% en
# # 4 · Library code on the wrong device
#
# **The story.** One morning in November 2024 *AI-Toolkit* stopped making sample pictures: same template, same configuration, new
# machine ([ai-toolkit #214](https://github.com/ostris/ai-toolkit/issues/214)). Its requirements named a library by its repository and not by
# a version, and that night the library had gained a bug
# ([diffusers #9895](https://github.com/huggingface/diffusers/issues/9895), taken back the next day in
# [#9896](https://github.com/huggingface/diffusers/pull/9896)).
#
# No release contains the bug, so the few lines are re-enacted here with the same names, in a file of their own that plays the
# library. A second bug of the same project follows: an autoencoder that nobody moved, and a check that is never true.

# %% zh
# # 4 · 库代码用错了设备
#
# **故事。** 2024 年 11 月的一个早晨，*AI-Toolkit* 突然无法生成样图了：模板没变，配置没变，只是换了一台新机器
# （[ai-toolkit #214](https://github.com/ostris/ai-toolkit/issues/214)）。它的依赖写的是某个库的代码仓库，而不是一个版本号，
# 而那个库恰好在前一晚引入了一个错误
# （[diffusers #9895](https://github.com/huggingface/diffusers/issues/9895)，第二天在
# [#9896](https://github.com/huggingface/diffusers/pull/9896) 中撤回）。
#
# 没有任何正式版本包含这个错误，所以这里用同样的名字把那几行重现出来，放在一个单独的文件里扮演“库”。
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

LIBRARY = '''
import torch


def prepare_latent_image_ids(height, width, device, dtype):
    latent_image_ids = torch.zeros(height, width, 3, device=device, dtype=dtype)
    latent_image_ids[..., 1] = latent_image_ids[..., 1] + torch.arange(height)[:, None]
    latent_image_ids[..., 2] = latent_image_ids[..., 2] + torch.arange(width)[None, :]
    return latent_image_ids.reshape(height * width, 3)
'''
folder = Path(tempfile.mkdtemp())
(folder / "pipeline_flux.py").write_text(LIBRARY)
sys.path.insert(0, str(folder))

from pipeline_flux import prepare_latent_image_ids

# %% en
# ## Run it and fail

# %% zh
# ## 运行，然后失败

# %% code raises-exception
%%devtrace ids
def sample(height, width):
    latents = torch.randn(1, 16, height * width, device=device)
    ids = prepare_latent_image_ids(height, width, device, latents.dtype)
    return latents, ids

latents, ids = sample(4, 6)

# %% en
# ## Read the report
#
# The tensor has no name: it is the value of `torch.arange(height)[:, None]`, made and used in one line. The report gives
# the line where it was born, and that line is not in this notebook but in a file that your code called.

# %% zh
# ## 读报告
#
# 这个张量没有名字：它就是 `torch.arange(height)[:, None]` 的值，在同一行里创建、同一行里使用。报告给出它诞生的那一行，
# 并指出这一行不在笔记本里，而在你的代码所调用的文件里。

# %% code
report = %devtrace report ids
finding = report.findings[0]
assert finding.rule == "device-mismatch" and finding.cause == "created-without-device"
assert finding.site.file.endswith("pipeline_flux.py") and "torch.arange(height)" in finding.culprit.born.text
assert "torch.arange(height, device=" in finding.help
finding.culprit.born.line, finding.culprit.born.text, finding.help

# %% en
# ## Why PyTorch behaves so
#
# A factory such as `torch.arange` that is told no device uses the default one, which is the CPU. The line before did say `device=device`,
# so its result is on the GPU, and the sum of the two is refused. The version before the bug built everything on the CPU and moved it once at the
# end; half of that change was forgotten.
#
# When the line is not yours: pin the version that works, report the line, upgrade when it is mended.

# %% zh
# ## PyTorch 为什么这样
#
# 像 `torch.arange` 这样的工厂函数，如果不指定设备，就使用默认设备，也就是 CPU。前一行写了 `device=device`，结果在 GPU 上，
# 于是两者相加被拒绝。出错之前的版本是全部在 CPU 上构建、最后一次性移动；那次修改漏掉了一半。
#
# 如果出错的不是你的代码：先固定到能用的版本，把那一行报告给作者，等修好了再升级。

# %% code
def prepare_latent_image_ids(height, width, device, dtype):
    latent_image_ids = torch.zeros(height, width, 3, device=device, dtype=dtype)
    latent_image_ids[..., 1] = latent_image_ids[..., 1] + torch.arange(height, device=device)[:, None]
    latent_image_ids[..., 2] = latent_image_ids[..., 2] + torch.arange(width, device=device)[None, :]
    return latent_image_ids.reshape(height * width, 3)

# %% code
%%devtrace ids_fixed
latents, ids = sample(4, 6)

# %% code
report = %devtrace report ids_fixed
assert not report.findings

# %% en
# ## The autoencoder that was never moved
#
# The same project turns a control picture into latents with an autoencoder (`vae`) and joins them to the noise. Before using the
# autoencoder it checks where it is and moves it if need be. Or so it seems.

# %% zh
# ## 从未被移动的自编码器
#
# 同一个项目用自编码器（`vae`）把一张控制图变成潜变量，再和噪声拼在一起。使用之前它会检查自编码器在哪里，必要时移动它。看上去是这样。

# %% code
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(3, 16, 3, padding=1)

    @property
    def device(self):
        return self.encoder.weight.device

    def encode(self, image):
        return self.encoder(image.to(self.device)).flatten(2)


vae = VAE()

# %% code raises-exception
%%devtrace vae
def add_control(img_input, control):
    if vae.device == "cuda":                 # never true: a torch.device is not a string, and cuda:0 is not "cuda"
        control = control.to("cuda:0")
    img_cond_seq = vae.encode(control)
    return torch.cat((img_input, img_cond_seq), dim=2)

add_control(latents, torch.rand(1, 3, 4, 6))

# %% en
# The odd one out is `img_cond_seq`, but it is only a messenger. The report follows it to what it was computed from:
# the weights of `vae`, which never left the CPU. Moving the result would silence the error and leave the autoencoder computing on the CPU.

# %% zh
# 与众不同的是 `img_cond_seq`，但它只是个信使。报告一直追到它由什么计算而来：`vae` 的权重，从未离开过 CPU。
# 只移动计算结果能让报错消失，却会让自编码器一直在 CPU 上计算。

# %% code
report = %devtrace report vae
finding = report.findings[0]
assert finding.rule == "device-mismatch" and finding.cause == "never-moved"
assert finding.culprit.name == "vae.encoder.weight"
finding.message

# %% code
vae.to(device)
(torch.device("cpu") == "cpu", torch.device("cuda:0") == torch.device("cuda"))

# %% code
%%devtrace vae_fixed
joined = add_control(latents, torch.rand(1, 3, 4, 6))

# %% code
report = %devtrace report vae_fixed
assert not any(finding.severity == "error" for finding in report.findings)

# %% en
# ## What would have caught it

# %% zh
# ## 怎样提前发现

# %% code
import devtrace

devtrace.expect(vae, latents, ids, device=device)

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
right = on_cuda(vae) and not on_cuda(VAE())
print("Right." if right else "Not yet: a torch.device has a .type.")
