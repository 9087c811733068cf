# %% en
# # 6 · Nothing fails and it is slow
#
# **Goal:** find the lines that make a GPU wait, and rewrite them. **Time:** 15 minutes, without a GPU. The first two stories take ten.
#
# A GPU works while the CPU hands it the next piece of work. Some lines force the CPU to wait until the GPU is done, others carry
# data to and fro. None of them is an error, so nothing points at them. devtrace counts them, line by line.
#
# This notebook counts; it does not time. On a simulated device time means nothing, and the counts are the same as on a real one.

# %% code
%load_ext devtrace
import torch
from torch import nn
from torch.nn import functional as F

if not torch.cuda.is_available():
    %devtrace simulate cuda:1
device = "cuda:0"


def costs(report):
    """The ledger's lines that cost: source, waits, copies to and from the device, operations on the CPU."""
    rows = [(row.site.text, row.syncs, row.h2d, row.d2h, row.cpu_compute) for row in report.ledger]
    return [row for row in rows if any(row[1:])]


def show(report):
    print(f"{'waits':>6}{'to GPU':>8}{'to CPU':>8}{'CPU ops':>9}  line")
    for line, waits, to_gpu, to_cpu, cpu_ops in costs(report):
        print(f"{waits:6}{to_gpu:8}{to_cpu:8}{cpu_ops:9}  {line}")


def warnings(report):
    return sorted({finding.rule for finding in report.findings if finding.severity == "warning"})

# %% en
# ## Reading a number in every step
#
# `.item()` hands a number to Python. Python can only have it when the GPU has computed it, so the CPU waits, and meanwhile it gives the GPU
# nothing to do.

# %% code
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
xs, ys = torch.randn(16, 8, 10, device=device), torch.randint(0, 3, (16, 8), device=device)

# %% code
%%devtrace item
total = 0.0
for x, y in zip(xs, ys):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(f"mean loss {total / len(xs):.3f}")

# %% code
report = %devtrace report item
show(report)

# %% code folded
assert "host-sync" in warnings(report)
assert sum(row.syncs for row in report.ledger) == 16

# %% en
# Add up on the device and read once, as the report advises:

# %% code
%%devtrace item_fixed
total = 0.0
for x, y in zip(xs, ys):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach().double()
total = float(total)
print(f"mean loss {total / len(xs):.3f}")

# %% code
report = %devtrace report item_fixed
show(report)

# %% code folded
assert not warnings(report)
assert sum(row.syncs for row in report.ledger) == 1

# %% en
# ## A mask
#
# `x[x > 0]` has as many elements as there are positive ones, and only the GPU knows how many. To give the result a shape the CPU has to
# ask. `torch.where` and multiplication keep the shape and ask nothing.

# %% code
%%devtrace mask
kept = [x[x > 0].sum() for x in xs]

# %% code
%%devtrace mask_fixed
kept = [torch.where(x > 0, x, 0.0).sum() for x in xs]

# %% code
before = %devtrace report mask
after = %devtrace report mask_fixed
counts = [sum(row.syncs for row in report.ledger) for report in (before, after)]
dict(zip(("waits before", "waits after"), counts))

# %% code folded
assert counts == [16, 0]

# %% en
# ## The same tensor, copied again and again
#
# `.to(x.device)` in `forward` makes a forgotten tensor work: it is carried to the GPU in each call. A buffer is carried once.

# %% code
class Scale(nn.Module):
    def __init__(self, buffer):
        super().__init__()
        scale = torch.linspace(0.5, 1.5, 10)
        if buffer:
            self.register_buffer("scale", scale, persistent=False)
        else:
            self.scale = scale

    def forward(self, x):
        return x * self.scale.to(x.device)


plain, buffered = Scale(buffer=False).to(device), Scale(buffer=True).to(device)

# %% code
%%devtrace copied
for x in xs:
    plain(x)

# %% code
%%devtrace copied_fixed
for x in xs:
    buffered(x)

# %% code
before = %devtrace report copied
after = %devtrace report copied_fixed
counts = [sum(row.h2d for row in report.ledger) for report in (before, after)]
dict(zip(("copies before", "copies after"), counts))

# %% code folded
assert warnings(before) == ["host-to-device-copy"] and not warnings(after)
assert counts == [16, 0]

# %% en
# ## A layer left on the CPU, and the round trip to it
#
# Code that adapts to wherever its model is will carry its input there and the result back. It is right, and the work is done on the
# CPU in every step.

# %% code
frozen = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 10)).requires_grad_(False)


def features(x):
    place = next(frozen.parameters()).device
    return frozen(x.to(place)).to(x.device)

# %% code
%%devtrace left
for x in xs:
    distance = F.mse_loss(features(x), x)

# %% code
report = %devtrace report left
show(report)

# %% code folded
assert "cpu-compute" in warnings(report)

# %% code
frozen.to(device);

# %% code
%%devtrace left_fixed
for x in xs:
    distance = F.mse_loss(features(x), x)

# %% code
report = %devtrace report left_fixed
show(report)

# %% code folded
assert not warnings(report) and not costs(report)

# %% en
# ## Keeping it so
#
# A count that is right today can be held. As a block, `devtrace.expect` fails when the code inside waits or copies more than you allow:

# %% code
import devtrace

with devtrace.expect(device, syncs=0, copies=0):
    for x in xs:
        buffered(x)

try:
    with devtrace.expect(device, syncs=0, copies=0):
        for x in xs:
            plain(x)
except devtrace.DeviceError as error:
    print(error)

# %% en
# ## Exercise
#
# `accuracy` gives the share of right predictions, and waits three times for each batch. Write it so that it waits once at most and gives
# the same. The next cell counts.

# %% code
def accuracy(model, xs, ys):
    right = seen = 0
    for x, y in zip(xs, ys):
        predicted = model(x).argmax(1)
        if (predicted == y).any():
            right += (predicted == y).sum().item()
        seen += int((y >= 0).sum())
    return right / seen

# %% code
with devtrace.record() as recording:
    share = accuracy(model, xs, ys)
waits = sum(row.syncs for row in recording.report.ledger)
expected = (model(xs).argmax(2) == ys).float().mean().item()
if share is None or abs(float(share) - expected) > 1e-4:
    print(f"Not yet: the share is {expected:.4f}, and not {share}.")
else:
    print("Right." if waits <= 1 else f"Not yet: it waited {waits} times.")
