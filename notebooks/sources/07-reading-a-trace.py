# %% en
# # 7 · Reading a trace
#
# **Goal:** read a trace in pictures, in Python and in other tools. **Time:** 10 minutes, without a GPU.
#
# A trace is more than its findings. This notebook records one training step of a small transformer whose two halves are on two
# devices, and reads it: in the views, in Python, and in other tools.

# %% code
%load_ext devtrace
import torch
from torch import nn
from torch.nn import functional as F

if torch.cuda.device_count() < 2:
    %devtrace simulate cuda:2

# %% code
class Halves(nn.Module):
    """Two encoder layers on one device, two on the next, and a head beside the last."""

    def __init__(self, width=32):
        super().__init__()
        layer = lambda: nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.embed = nn.Embedding(100, width).to("cuda:0")
        self.lower = nn.Sequential(layer(), layer()).to("cuda:0")
        self.upper = nn.Sequential(layer(), layer()).to("cuda:1")
        self.head = nn.Linear(width, 100).to("cuda:1")

    def forward(self, words):
        middle = self.lower(self.embed(words))
        return self.head(self.upper(middle.to("cuda:1")))


torch.manual_seed(0)
model = Halves()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
words = torch.randint(0, 100, (4, 12), device="cuda:0")
targets = torch.randint(0, 100, (4, 12), device="cuda:1")

# %% code
%%devtrace step
loss = F.cross_entropy(model(words).flatten(0, 1), targets.flatten())
loss.backward()
optimizer.step()

# %% en
# ## The views
#
# **Timeline.** One lane for each device. The forward pass goes through the first lane, crosses once, and goes on in the second;
# the backward pass comes back the same way. The two arrows are the only copies: the activation on its way there, its gradient on its
# way back. **Modules** shows the same as nested boxes, `lower` in one colour and `upper` in the other. **Lines** lists what each source
# line caused, **Ops** every operation.
#
# ## The same in Python
#
# `report.trace` holds tables; rows follow their references.

# %% code
report = %devtrace report step
trace = report.trace
copies = [(str(copy.from_), str(copy.to), copy.bytes, copy.op.phase) for copy in trace.copies]
copies

# %% code folded
assert not any(finding.severity in ("error", "warning") for finding in report.findings)
assert copies == [("cuda:0", "cuda:1", 6144, "forward"), ("cuda:1", "cuda:0", 6144, "backward")]

# %% code
from collections import Counter

Counter((str(op.device), op.phase) for op in trace.ops)

# %% en
# An operation knows the module call that it ran in and the line that asked for it; an operation of the backward pass knows the
# operation of the forward pass that it differentiates.

# %% code
backward = next(op for op in trace.ops if op.phase == "backward" and op.forward and op.forward.module)
backward.name, backward.forward.name, backward.forward.module.path, backward.forward.site.text

# %% code folded
assert backward.forward.module.path == "model.head"
assert backward.forward.site.text == 'self.head(self.upper(middle.to("cuda:1")))'

# %% en
# The modules, in the order in which they were first called, with what ran in them:

# %% code
for call in trace.calls:
    if call.parent is None or call.parent.parent is None:
        print(f"{call.module.path:20} {call.module.type:24} {call.end - call.begin:4} ops")

# %% en
# ## As tables and figures

# %% code
frames = trace.to_pandas()
frames["ops"].groupby(["device", "phase"], observed=True).size()

# %% code
figure = report.figure("devices")
[type(part).__name__ for part in figure.data]

# %% en
# ## Out of the notebook
#
# A saved trace opens in JupyterLab by a double-click and in Python with `devtrace.load`; the html holds all views in one file that needs no network;
# the Perfetto file opens in [ui.perfetto.dev](https://ui.perfetto.dev).

# %% code
import tempfile
from pathlib import Path

import devtrace

folder = Path(tempfile.mkdtemp())
trace.save(folder / "step.devtrace")
trace.to_perfetto(folder / "step.json")
report.to_html(folder / "step.html")
again = devtrace.load(folder / "step.devtrace")
sorted(path.name for path in folder.iterdir())

# %% code folded
assert [op.name for op in again.ops] == [op.name for op in trace.ops]

# %% en
# ## Exercise
#
# Which module ran the most operations in the forward pass? Count each operation for `op.module`, the innermost module that it ran in.
# Answer with one expression over `trace.ops`, whose value is a path such as `"model.head"`; the next cell checks it.

# %% code
busiest = None

# %% code
counts = Counter(op.module.path for op in trace.ops if op.module and op.phase == "forward")
print(
    "Right."
    if busiest in counts and counts[busiest] == max(counts.values())
    else "Not yet: count op.module.path over the forward ops."
)
