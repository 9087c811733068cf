# %% en
# # 2 · Only validation fails
#
# **The story.** RecBole trains recommender systems. With its models Random, SLIMElastic and ADMMSLIM and *sampled* evaluation, a run on a
# GPU trains without complaint and dies in the first validation:
# [RecBole #1984](https://github.com/RUCAIBox/RecBole/issues/1984) (mended in [#1997](https://github.com/RUCAIBox/RecBole/pull/1997),
# released with 1.2.1). Why does training pass? The answer is stranger than the bug.
#
# This notebook runs the real RecBole 1.2.0 on a small data set made below, and needs no GPU.

# %% zh
# # 2 · 只有验证阶段失败
#
# **故事。** RecBole 是训练推荐系统的库。用它的 Random、SLIMElastic、ADMMSLIM 模型加上*采样*评估，在 GPU 上训练时一声不响，
# 却死在第一次验证：
# [RecBole #1984](https://github.com/RUCAIBox/RecBole/issues/1984)（修复见 [#1997](https://github.com/RUCAIBox/RecBole/pull/1997)，
# 随 1.2.1 发布）。为什么训练能通过？答案比这个 bug 本身更离奇。
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
for name in ("ray", "ray.tune", "kmeans_pytorch"):            # extras that no model here uses
    sys.modules.setdefault(name, types.ModuleType(name))
sys.modules["ray"].tune = sys.modules["ray.tune"]
sys.modules["kmeans_pytorch"].kmeans = None
load = torch.load
torch.load = lambda *args, **options: load(*args, **{"weights_only": False, **options})   # checkpoints hold a Config

try:
    from recbole.quick_start import run_recbole
except ImportError as missing:
    raise SystemExit(f"This notebook needs RecBole ({missing}): pip install recbole==1.2.0 tabulate psutil") from None

folder = Path(tempfile.mkdtemp())
os.chdir(folder)                                              # RecBole writes its logs where it runs
(folder / "tiny").mkdir()
rng = random.Random(0)
rows = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
rows += [f"{user}\t{item}\t{rng.randint(1, 5)}\t{at}" for user in range(30) for at, item in enumerate(rng.sample(range(40), 12))]
(folder / "tiny" / "tiny.inter").write_text("\n".join(rows))


def run(model, mode):
    """Train and evaluate as the issue does: `uni20` samples 20 items for each true one, `full` ranks all items."""
    settings = {
        "data_path": str(folder), "epochs": 1, "eval_step": 1, "show_progress": False, "state": "ERROR", "use_gpu": True, "gpu_id": "0",
        "train_neg_sample_args": None, "eval_args": {"mode": {"valid": mode, "test": mode}}, "topk": [5], "metrics": ["Recall"],
        "valid_metric": "Recall@5", "train_batch_size": 512, "eval_batch_size": 512,
    }
    return run_recbole(model=model, dataset="tiny", config_dict=settings, saved=True)

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
# The line that fails writes scores into a matrix: `scores[row_idx, col_idx] = origin_scores`. Three of its four tensors are on the CPU, and
# two of them rightly so: an index may be on the CPU. Only the *values* must be where the matrix is. The report names them, and the line
# in the model that made them without a device. It also says that the line was first reached in validation.

# %% zh
# ## 读报告
#
# 失败的那一行把得分写进一个矩阵：`scores[row_idx, col_idx] = origin_scores`。四个张量里有三个在 CPU 上，其中两个完全合法：
# 索引可以在 CPU 上。只有*值*必须和矩阵在同一设备。报告点名的正是它，以及模型里没有指定设备就创建它的那一行；
# 报告还指出，这一行是在验证阶段才第一次走到的。

# %% code
report = %devtrace report random
finding = report.findings[0]
assert finding.rule == "device-mismatch" and finding.culprit.device == "cpu"
assert "origin_scores" in finding.culprit.names
assert finding.site.file.endswith("trainer.py") and finding.site.line == 558
assert finding.culprit.born.file.endswith("random.py") and finding.culprit.born.line == 38
finding.culprit.names, finding.culprit.born.text

# %% en
# SLIMElastic and ADMMSLIM fail at the same line with tensors of another birth: their scores are computed with numpy, and
# `torch.from_numpy` shares numpy's memory, which is the CPU's. (`devtrace.record` is the same as `%%devtrace`, for programs.)

# %% zh
# SLIMElastic 和 ADMMSLIM 失败在同一行，但张量的来历不同：它们的得分由 numpy 计算，而 `torch.from_numpy` 与 numpy 共享内存，
# 也就是 CPU 的内存。（`devtrace.record` 与 `%%devtrace` 相同，用于程序中。）

# %% code
import contextlib
import inspect

import devtrace
from recbole.model.general_recommender.random import Random
from recbole.model.general_recommender.slimelastic import SLIMElastic

for model in ("SLIMElastic", "ADMMSLIM"):
    with contextlib.suppress(RuntimeError), devtrace.record() as recording:
        run(model, "uni20")
    finding = recording.report.findings[0]
    assert finding.rule == "device-mismatch" and finding.site.line == 558
    assert "origin_scores" in finding.culprit.names
    print(model, "·", finding.site.text, "·", finding.message)
print(inspect.getsource(SLIMElastic.predict))

# %% en
# ## Why training passes
#
# The loss of these three models is a fresh tensor on the CPU, `torch.nn.Parameter(torch.zeros(1))`. Training never touches the GPU at all,
# so it cannot fail there. Only validation brings a model's output together with a tensor that the trainer made on the GPU.

# %% zh
# ## 为什么训练能通过
#
# 这三个模型的损失是一个刚在 CPU 上创建的张量 `torch.nn.Parameter(torch.zeros(1))`。训练根本没有碰过 GPU，自然不会在那里失败。
# 只有验证阶段才把模型的输出和训练器在 GPU 上创建的张量放到了一起。

# %% code
print(inspect.getsource(Random.calculate_loss))

# %% en
# ## The same models do not fail with full evaluation
#
# When all items are ranked nothing is written into a matrix on the GPU, so nothing fails, in any version. All scoring happens on the CPU;
# the GPU that was asked for is idle. The devices of the operations say it:

# %% zh
# ## 全量评估时，同样的模型不会失败
#
# 对所有物品排序时，不需要往 GPU 上的矩阵里写东西，所以任何版本都不会失败。但全部打分都在 CPU 上进行，
# 你要求使用的 GPU 一直闲着。看操作所在的设备就知道：

# %% code
%%devtrace full --no-timeline
result = run("Random", "full")

# %% code
from collections import Counter

full = %devtrace report full
assert not any(finding.severity == "error" for finding in full.findings)
Counter(str(op.device) for op in full.trace.ops if op.kind == "compute")

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
assert not any(finding.severity == "error" for finding in report.findings)

# %% en
# ## What would have caught it
#
# A test that runs *validation* on a device, simulated or real; a training step proves nothing here. And an expectation on what a model
# predicts:

# %% zh
# ## 怎样提前发现
#
# 一个在（模拟的或真实的）设备上跑*验证*的测试；在这里，跑一步训练什么也证明不了。还可以对模型的预测结果提出期望：

# %% code
prediction = torch.rand(4)
try:
    devtrace.expect(prediction, device="cuda:0")
except devtrace.DeviceError as error:
    print(error)

# %% en
# ## Exercise
#
# Mend `SLIMElastic` in the same way: complete `predict` so that its result is on `self.device`. The next cell runs the evaluation.

# %% zh
# ## 练习
#
# 用同样的方法修好 `SLIMElastic`：补全 `predict`，让结果位于 `self.device`。下一个单元格会运行评估。

# %% code
original = SLIMElastic.predict


def predict(self, interaction):
    return original(self, interaction)

# %% code
SLIMElastic.predict = predict
try:
    run("SLIMElastic", "uni20")
    print("Right.")
except RuntimeError:
    print("Not yet: move what comes from numpy to self.device.")
