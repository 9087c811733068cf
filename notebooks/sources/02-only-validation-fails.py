# %% en
# # 2 · Only validation fails
#
# **Goal:** find a factory without `device=`, and code that never uses the GPU. **Time:** 20 minutes, without a GPU.
#
# **The story.** RecBole trains recommender systems. With its models Random, SLIMElastic and ADMMSLIM and *sampled* evaluation, a run on a
# GPU trains without complaint and dies in the first validation:
# [RecBole #1984](https://github.com/RUCAIBox/RecBole/issues/1984) (mended in [#1997](https://github.com/RUCAIBox/RecBole/pull/1997),
# released with 1.2.1). Why does training pass? The answer is stranger than the bug.
#
# Two words of the field: an *epoch* is one pass over the training data; *validation* measures the model on data held back. *Sampled*
# evaluation ranks each true item among a few random ones, *full* evaluation among all.
#
# This notebook runs the real RecBole 1.2.0 on a small data set made below, and needs no GPU.

# %% zh
# # 2 · 只有验证阶段失败
#
# **目标**：找到没有写 `device=` 的创建函数，以及从不使用 GPU 的代码。**时间**：20 分钟，不需要 GPU。
#
# **故事。** RecBole 是训练推荐系统的库。用它的 Random、SLIMElastic、ADMMSLIM 模型加上*采样*评估，在 GPU 上训练时一声不响，
# 却死在第一次验证：
# [RecBole #1984](https://github.com/RUCAIBox/RecBole/issues/1984)（修复见 [#1997](https://github.com/RUCAIBox/RecBole/pull/1997)，
# 随 1.2.1 发布）。为什么训练能通过？答案比这个 bug 本身更离奇。
#
# 两个术语：*验证*（validation）是在留出的数据上衡量模型；*采样*评估把每个真实物品和少量随机物品放在一起排名，*全量*评估则和所有物品一起排名。
#
# 本笔记本在下面生成的小数据集上运行真实的 RecBole 1.2.0，不需要 GPU。

# %% code
%load_ext devtrace
import os
import random
import sys
import tempfile
import types
import warnings
from pathlib import Path

import numpy as np
import torch

if not torch.cuda.is_available():
    %devtrace simulate cuda:1

# %% en
# RecBole 1.2.0 is older than the numpy and torch of today. These lines give it the names it expects; they have nothing to do with the bug.

# %% zh
# RecBole 1.2.0 比今天的 numpy 和 torch 更旧。下面几行补上它所期待的名字，与这个 bug 无关。

# %% code
warnings.simplefilter("ignore")
for name, old in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}.items():
    if not hasattr(np, name):
        setattr(np, name, old)
for name in ("ray", "ray.tune", "kmeans_pytorch"):  # extras that no model here uses
    sys.modules.setdefault(name, types.ModuleType(name))
sys.modules["ray"].tune = sys.modules["ray.tune"]
sys.modules["kmeans_pytorch"].kmeans = None
load = torch.load
torch.load = lambda *args, **options: load(*args, **{"weights_only": False, **options})  # of a Config

try:
    from recbole.quick_start import run_recbole
except ImportError as missing:
    needs = "pip install recbole==1.2.0 tabulate psutil"
    raise SystemExit(f"This notebook needs RecBole ({missing}): {needs}") from None

folder = Path(tempfile.mkdtemp())
os.chdir(folder)  # RecBole writes its logs where it runs
(folder / "tiny").mkdir()
rng = random.Random(0)
rows = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
for user in range(30):
    rows += [
        f"{user}\t{item}\t{rng.randint(1, 5)}\t{at}"
        for at, item in enumerate(rng.sample(range(40), 12))
    ]
(folder / "tiny" / "tiny.inter").write_text("\n".join(rows))


def run(model, mode):
    """Train and evaluate as the issue does: `uni20` ranks each true item among 20, `full` among all."""
    settings = {
        "data_path": str(folder),
        "epochs": 1,
        "eval_step": 1,
        "show_progress": False,
        "state": "ERROR",
        "use_gpu": True,
        "gpu_id": "0",
        "train_neg_sample_args": None,
        "eval_args": {"mode": {"valid": mode, "test": mode}},
        "topk": [5],
        "metrics": ["Recall"],
        "valid_metric": "Recall@5",
        "train_batch_size": 512,
        "eval_batch_size": 512,
    }
    return run_recbole(model=model, dataset="tiny", config_dict=settings, saved=True)


def at(site):
    return Path(site.file).name, site.line

# %% en
# ## Run it and fail

# %% zh
# ## 运行，然后失败

# %% code raises-exception
%%devtrace random --no-timeline
run("Random", "uni20")

# %% en
# ## Read the report
#
# The line that fails writes scores into a matrix: `scores[row_idx, col_idx] = origin_scores`. Of its four tensors only `scores` is on the
# GPU (the next cell prints them). Two of the others are rightly on the CPU: an index may be. Only the *values* must be where the
# matrix is. The report names them, and the line in the model that made them without a device. It also says that training did not reach this
# line, and that the line belongs to RecBole: what you can do about it is to change it in a copy of your own, and to report it there.

# %% zh
# ## 读报告
#
# 失败的那一行把得分写进一个矩阵：`scores[row_idx, col_idx] = origin_scores`。四个张量里只有 `scores` 在 GPU 上（下一个单元格会打印它们）。
# 另外三个中有两个在 CPU 上完全合法：索引可以在 CPU 上。只有*值*必须和矩阵在同一设备。报告点名的正是它，以及模型里没有指定设备就创建它的那一行；
# 报告还指出训练没有走到这一行，并且这一行属于 RecBole：你能做的是在自己的副本中修改它，并向作者报告。

# %% code
report = %devtrace report random
finding = report.findings[0]
[(str(tensor.device), tensor.shape, tensor.dtype) for tensor in report.trace.ops[finding.op].inputs]

# %% code folded
assert finding.rule == "device-mismatch" and set(finding.devices) == {"cpu", "cuda:0"}
assert finding.culprit.name == "origin_scores" and finding.culprit.device == "cpu"
assert at(finding.site) == ("trainer.py", 558)
assert at(finding.culprit.born) == ("random.py", 38)
assert "torch.rand(len(interaction))" in finding.culprit.born.text
assert finding.cause == "created-without-device"
assert "torch.rand(len(interaction), device=self.device)" in finding.help
assert "recbole 1.2.0" in finding.message

# %% en
# SLIMElastic and ADMMSLIM fail at the same line with tensors of another birth: their scores are computed with numpy, and
# `torch.from_numpy` shares numpy's memory, which is the CPU's. ADMMSLIM then adds a little noise, so the tensor that fails was made
# by `add_noise`, out of one made by `torch.from_numpy`; the fix belongs at the line that both pass through.
# (`devtrace.record` is the same as `%%devtrace`, for programs.)

# %% zh
# SLIMElastic 和 ADMMSLIM 失败在同一行，但张量的来历不同：它们的得分由 numpy 计算，而 `torch.from_numpy` 与 numpy 共享内存，
# 也就是 CPU 的内存。ADMMSLIM 之后还加了一点噪声，所以出错的张量是 `add_noise` 创建的，而它又来自 `torch.from_numpy` 创建的张量；
# 修复应当写在两者都经过的那一行。（`devtrace.record` 与 `%%devtrace` 相同，用于程序中。）

# %% code
import contextlib
import inspect

import devtrace
from recbole.model.general_recommender.admmslim import ADMMSLIM
from recbole.model.general_recommender.random import Random
from recbole.model.general_recommender.slimelastic import SLIMElastic

findings = {}
for model in ("SLIMElastic", "ADMMSLIM"):
    with contextlib.suppress(RuntimeError), devtrace.record() as recording:
        run(model, "uni20")
    findings[model] = recording.report.findings[0]
    print(f"{model}\n{recording.report}\n")
print(inspect.getsource(SLIMElastic.predict))

# %% code folded
births = {
    "SLIMElastic": [("slimelastic.py", 98)],
    "ADMMSLIM": [("admmslim.py", 30), ("admmslim.py", 114)],
}
for model, (birth, *others) in births.items():
    finding = findings[model]
    assert finding.rule == "device-mismatch"
    assert finding.cause == "never-moved"
    assert at(finding.site) == ("trainer.py", 558)
    assert finding.culprit.name == "origin_scores" and at(finding.culprit.born) == birth
    assert set(others) <= set(map(at, finding.culprit.chain))
    assert ".to(self.device)" in finding.help

# %% en
# ## Why training passes
#
# The loss of these three models is a fresh tensor on the CPU, the same line in all of them. Training computes nothing on the GPU,
# so it cannot fail there. Only validation brings a model's output together with a tensor that the trainer made on the GPU.

# %% zh
# ## 为什么训练能通过
#
# 这三个模型的损失都是同一行代码：一个刚在 CPU 上创建的张量。训练没有在 GPU 上计算任何东西，自然不会在那里失败。
# 只有验证阶段才把模型的输出和训练器在 GPU 上创建的张量放到了一起。

# %% code
for model in (Random, SLIMElastic, ADMMSLIM):
    print(model.__name__, inspect.getsource(model.calculate_loss))

# %% en
# ## The same models do not fail with full evaluation
#
# When all items are ranked nothing is written into a matrix on the GPU, so nothing fails. All scoring happens on the CPU;
# the GPU that was asked for computes nothing. The devices of the operations that compute say it:

# %% zh
# ## 全量评估时，同样的模型不会失败
#
# 对所有物品排序时，不需要往 GPU 上的矩阵里写东西，所以不会失败。但全部打分都在 CPU 上进行，
# 你要求使用的 GPU 什么也没算。看计算类操作所在的设备就知道：

# %% code
%%devtrace full --no-timeline
result = run("Random", "full")

# %% code
from collections import Counter

full = %devtrace report full
computed = Counter(str(op.device) for op in full.trace.ops if op.kind == "compute")
computed

# %% code folded
assert not any(finding.severity == "error" for finding in full.findings)
assert computed["cpu"] and not computed["cuda:0"]
assert any(finding.rule == "cpu-compute" for finding in full.findings)  # the report notes it too

# %% en
# ## The fix
#
# The one that RecBole released: say the device where the tensor is made.

# %% zh
# ## 修复
#
# RecBole 发布的修复：在创建张量的地方指定设备。

# %% code
def predict(self, interaction):
    return torch.rand(len(interaction), device=self.device).squeeze(-1)


Random.predict = predict

# %% code
%%devtrace fixed --no-timeline
result = run("Random", "uni20")

# %% code
report = %devtrace report fixed
[finding.severity for finding in report.findings]

# %% code folded
assert not any(finding.severity == "error" for finding in report.findings)

# %% en
# ## What would have caught it
#
# A test that runs *validation* on a device, simulated or real; a training step proves nothing here. And an expectation of what a model
# predicts, at the door between the model and the trainer. RecBole calls `predict` once before it trains, with one user and one item, to
# estimate its cost; so here the error comes at once.

# %% zh
# ## 怎样提前发现
#
# 一个在（模拟的或真实的）设备上跑*验证*的测试；在这里，跑一步训练什么也证明不了。还可以在模型与训练器交接的地方，对预测结果提出期望。
# RecBole 在训练之前会用一个用户和一个物品调用一次 `predict`，以估计它的开销；所以在这里错误立刻就会出现。

# %% code
original = SLIMElastic.predict


def watched(self, interaction):
    scores = original(self, interaction)
    devtrace.expect(scores, device=self.device)
    return scores


SLIMElastic.predict = watched
try:
    run("SLIMElastic", "uni20")
except devtrace.DeviceError as error:
    print(error)
SLIMElastic.predict = original

# %% en
# ## Exercise
#
# Mend `SLIMElastic` in the same way: complete `predict` so that the same scores are on `self.device`. The next cell runs the evaluation.

# %% zh
# ## 练习
#
# 用同样的方法修好 `SLIMElastic`：补全 `predict`，让同样的得分位于 `self.device`。下一个单元格会运行评估。

# %% code
def predict(self, interaction):
    return original(self, interaction)

# %% code
def checked(self, interaction):
    scores = predict(self, interaction)
    assert torch.is_tensor(scores), "predict gives back no tensor"
    assert torch.allclose(scores.cpu(), original(self, interaction)), "the scores have changed"
    return scores


SLIMElastic.predict = checked
try:
    run("SLIMElastic", "uni20")
    print("Right.")
except Exception as error:
    print(f"Not yet: {error}")
SLIMElastic.predict = original
