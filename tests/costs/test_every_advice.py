"""Each advice on what costs time is followed, by its edit or by hand, and held to the proof of `devtrace fix --costs`.

What no program of one process can follow, or what changes values because it has to, is in WORDS with its reason.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Final

import pytest

from cost_proofs import Proofs, followed, mark_of
from devtrace.costs.advice import BETWEEN_DEVICES, SINGLY, TO_DEVICE, TO_HOST, WAITS
from devtrace.words.catalogue import templates

pytestmark = pytest.mark.one_in(6)

PROGRAM: Final = """
import torch
from torch import nn
from torch.nn import functional as F


{before}


def run(device):
    net = nn.Linear(8, 8).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    xs, kept, total, best = torch.rand(14, 16, 8, device=device), [], 0.0, 0.0
{above}
    for step, x in enumerate(xs):
        optimizer.zero_grad()
        out = net(x)
        loss = out.square().mean()
{line}
        loss.backward()
        optimizer.step()
{below}
    return [float(each) for each in kept], float(total), float(best), net.weight.tolist()
"""

FOLLOWED: Final[dict[str, dict[str, str]]] = {
    "host-sync.to-count.help": {
        "line": """
            loss = loss + out[out > 0].square().sum().sqrt()  # 1
            #1> loss = loss + torch.where(out > 0, out, 0).square().sum().sqrt()
        """
    },
    "host-sync.to-count-labels.help": {
        "line": """
            labels = x.argmax(1)
            seen = labels != 3
            loss = loss + F.cross_entropy(out[seen], labels[seen])  # 1
            #1> loss = loss + F.cross_entropy(out, torch.where(seen, labels, -100))
        """
    },
    "host-sync.to-count-mean.help": {
        "line": """
            seen = x > 0.3
            loss = loss + F.mse_loss(out[seen], x[seen])  # 1
            #1> each = F.mse_loss(out, x, reduction="none")
            #1> loss = loss + torch.where(seen, each, 0).sum() / seen.sum()
        """
    },
    "host-sync.to-add-up.help": {
        "line": """
            size = sum(p.detach().abs().max().item() for p in net.parameters())  # 1
            #1> size = torch.stack([p.detach().abs().max() for p in net.parameters()]).sum()
            if step % 9 == 8 and size > 1e6:
                break
        """
    },
    "host-sync.to-write.help": {
        "line": """
            text = f"{step}: {loss:.3f}"  # 1
            #1> text = f"{step}: {loss:.3f}" if step % 100 == 0 else ""
        """
    },
    "host-sync.now-and-then": {
        "before": """
            def shown(loss, count):
                return f"{loss:.3f}"  # 1
                #1> return f"{loss:.3f}" if count % 100 == 0 else ""
        """,
        "line": "text = shown(loss, step)",
    },
    "host-sync.to-add.help": {
        "line": """
            kept[0] += loss.item()  # 1
            #1> kept[0] = kept[0] + loss.detach()
        """,
        "above": "kept = [0.0]",
    },
    "fixed.add-up": {"line": "total += loss.item()  # 1"},
    "fixed.append": {"line": "kept.append(loss.item())  # 1", "above": "kept = []"},
    "host-sync.to-decide.help": {
        "line": """
            if torch.isnan(loss):  # 1
            #1> if step % 100 == 0 and torch.isnan(loss):
                raise ValueError(step)
        """
    },
    "host-sync.to-keep.help": {
        "above": "book = type('Book', (), {'losses': []})()",
        "line": """
            book.losses.append(loss.item())  # 1
            #1> book.losses.append(loss.detach())
        """,
        "below": """
            kept = book.losses
            #1> kept = torch.stack(book.losses).tolist()
        """,
    },
    "host-sync.to-read.help": {
        "above": "table = {}",
        "line": """
            table[step] = loss.item()  # 1
            #1> table[step] = loss.detach()
        """,
        "below": """
            kept = list(table.values())
            #1> kept = torch.stack(kept).tolist()
        """,
    },
    "host-sync.to-pick.help": {
        "line": """
            row = out[0].detach()
            for score in row:  # -1
            #1> for score in row.tolist():
                total += max(score.item(), 0.1)  # 1
                #1> total += max(score, 0.1)
        """
    },
    "host-sync.to-return.help": {
        "line": """
            top = out.detach().max().item()  # 1
            #1> top = out.detach().max()
            loss = loss + (out * torch.full((8,), top, device=device)).mean()  # -1
            #1> loss = loss + (out * top.expand(8)).mean()
        """
    },
    "host-sync.to-compare.help": {
        "above": """
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
            encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).to(device)
            mask = nn.Transformer.generate_square_subsequent_mask(16).to(device)
        """,
        "line": """
            loss = loss + encoder(out, mask=mask).mean()  # 1
            #1> loss = loss + encoder(out, mask=mask, is_causal=True).mean()
        """,
    },
    "host-sync.to-bound.help": {
        "line": """
            longest = int((x[:, 0] > 2).sum()) + 3  # 1
            #1> longest = 3
            loss = loss + out[:, :longest].mean()
        """
    },
    "host-sync.to-scale.help": {
        "above": "mean = torch.zeros(8, device=device)",
        "line": """
            with torch.no_grad():
                share = loss.sigmoid().item() / 2  # 1
                #1> share = loss.sigmoid() / 2
                mean.add_(out.detach().mean(0), alpha=share)  # -1
                #1> mean.add_(out.detach().mean(0) * share)
            loss = loss + (out * mean).mean()
        """,
    },
    "host-sync.to-order.help": {
        "line": """
            top = max(out.mean(), out[0].mean())  # 1
            #1> top = torch.stack([out.mean(), out[0].mean()]).max()
            loss = loss + top
        """
    },
    "copy.move-module": {
        "before": """
            class Shared(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = nn.Parameter(torch.ones(8))

                def forward(self, x):
                    return x * self.weight.to(x.device)  # 1
                    #1> return x * self.weight
        """,
        "above": """
            shared = Shared()
            #1> shared = Shared().to(device)
        """,
        "line": "loss = loss + shared(out).mean()",
    },
    "copy.keep": {
        "above": """
            gain = torch.ones(8, requires_grad=True)
            #1> gain = torch.ones(8, device=device, requires_grad=True)
        """,
        "line": """
            loss = loss + (out * gain.to(device, torch.float64)).mean().float()  # 1
            #1> loss = loss + (out * gain.to(device, torch.float64)).mean().float()
        """,
    },
    "copy.above-loop": {
        "above": "table = torch.rand(8)",
        "line": "loss = loss + (out * table.to(device)).mean()  # 1",
    },
    "copy.once": {
        "above": """
            tables = {1: torch.rand(8)}
            #1> tables = {1: tables[1].to(device)}
        """,
        "line": """
            loss = loss + (out * tables[1].to(device)).mean()  # 1
            #1> loss = loss + (out * tables[1]).mean()
        """,
    },
    "copy.few-bytes.help": {
        "above": "noise = torch.rand(14, 16, 2)",
        "line": """
            parts = []
            for k in range(16):
                parts.append(noise[step, k].to(device))  # 1
                #1> parts.append(noise[step, k])
            loss = loss + (out * torch.stack(parts)[:8, 0]).mean()  # -1
            #1> loss = loss + (out * torch.stack(parts).to(device)[:8, 0]).mean()
        """,
    },
    "copy.in-each-step.help": {
        "line": """
            kept += out.detach()[0].tolist()  # 1
            #1> kept.append(out.detach()[0])
        """,
        "below": """
            #1> kept = torch.cat(kept).tolist()
        """,
    },
    "copy.back.help": {
        "line": """
            half = out.detach().cpu()  # 1
            #1> half = out.detach()
            half = half / 2
            loss = loss + (out * half.to(device)).mean()  # -1
            #1> loss = loss + (out * half).mean()
        """
    },
    "copy.back-numpy.help": {
        "line": """
            half = out.detach().cpu().numpy()  # 1
            #1> half = out.detach()
            half = torch.from_numpy(half / 2)  # -1
            #1> half = half / 2
            loss = loss + (out * half.to(device)).mean()  # -1
            #1> loss = loss + (out * half).mean()
        """
    },
    "copy.unused.help": {
        "above": "names = torch.arange(14 * 16).view(14, 16)",
        "line": """
            ids = names[step]
            ids = ids.to(device)  # -1
            kept.append(ids.cpu().sum())  # 1
            #1> kept.append(ids.sum())
        """,
    },
    "copy.there-already.help": {
        "line": """
            large = out.detach().repeat(1, 16)
            host = large.cpu()
            kept.append((host - large.cpu().mean()).sum())  # 1
            #1> kept.append((host - host.mean()).sum())
        """,
    },
    "copy.weights.help": {
        "line": """
            kept.append(net.weight.detach().cpu().sum())  # 1
            #1> kept.append(net.weight.detach().sum())
        """
    },
    "copy.unchanged.help": {
        "above": """
            edges = torch.rand(8, 8)
            #1> edges = edges.to(device)
        """,
        "line": """
            share = edges / edges.sum(1)
            loss = loss + (out @ share.to(device)).mean()  # 1
            #1> loss = loss + (out @ share).mean()
        """,
    },
    "copy.constant.help": {"line": "loss = loss + (out * torch.eye(8).to(device)[0]).mean()  # 1"},
    "copy.number.help": {
        "line": """
            rate = torch.as_tensor(0.5).to(device)  # 1
            #1> rate = 0.5
            loss = loss * rate
        """
    },
    "copy.keep-attribute": {
        "before": """
            class Prior:
                def __init__(self):
                    self.all = {"table": torch.rand(8)}

                def __call__(self, x):
                    table = self.all["table"].to(x.device)  # 1
                    #1> self.all["table"] = table = self.all["table"].to(x.device)
                    return x * table
        """,
        "above": "prior = Prior()",
        "line": "loss = loss + prior(out).mean()",
    },
    "copy.keep-moved": {
        "before": """
            class Prior:
                def __init__(self):
                    self.table = torch.rand(8)

                def __call__(self, x):
                    return x * self.table.to(x.device)  # 1
        """,
        "above": "prior = Prior()",
        "line": "loss = loss + prior(out).mean()",
    },
    "copy.keep-moved-or-register": {
        "before": """
            class Prior(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.table = torch.rand(8)

                def forward(self, x):
                    return x * self.table.to(x.device)  # 1
        """,
        "above": "prior = Prior().to(device)",
        "line": "loss = loss + prior(out).mean()",
    },
    "copy.register": {
        "before": """
            class Prior(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.table = torch.rand(8)
                    #1> self.register_buffer("table", self.__dict__.pop("table"), persistent=False)

                def forward(self, x):
                    return x * self.table.to(x.device) if len(x) else x  # 1
                    #1> return x * self.table
        """,
        "above": "prior = Prior().to(device)",
        "line": "loss = loss + prior(out).mean()",
    },
    "cpu-compute.help": {
        "above": """
            teacher = nn.Linear(8, 8).requires_grad_(False)
            #1> teacher = teacher.to(device)
        """,
        "line": """
            aim = teacher(x.cpu())  # 1
            #1> aim = teacher(x)
            loss = loss + F.mse_loss(out, aim.to(device))  # -1
            #1> loss = loss + F.mse_loss(out, aim)
        """,
    },
}

WORDS: Final = {
    "host-sync.to-check.help": "a note: a step that reads what it draws waits anyway",
    "host-sync.to-schedule.help": "a learning rate that is set less often trains other weights",
    "host-sync.to-give.help": "a number that is computed less often is another number in most steps",
    "host-sync.to-format.help": "a package makes the text: only its authors can follow",
    "host-sync.to-draw.help": "what the CPU draws are other numbers than what the device draws",
    "copy.draw.help": "what the device draws are other numbers than what the CPU draws",
    "copy.move-its-module": "as copy.move-module, of a module that has no name to advise with",
    "copy.too-soon.help": "values that may be old are mended by one wait more, not by less",
    "copy.left-to-ddp.help": "of several processes: tests/jobs/test_rank_rules.py has the program",
    "cpu-compute.move": "of a model on two devices, whose copies do not fall: it ends the work on the CPU",
    "cpu-compute.register": "as cpu-compute.move",
}

CATALOGUE: Final = templates("en")


def text_of(parts: dict[str, str]) -> str:
    indents = {"before": 0, "above": 4, "line": 8, "below": 4}
    blocks = {
        name: textwrap.indent(textwrap.dedent(parts.get(name, "")).strip("\n"), " " * indent)
        for name, indent in indents.items()
    }
    text = PROGRAM
    for name, block in blocks.items():
        text = text.replace(f"{{{name}}}", block)
    return text


def is_of(key: str, text: str) -> bool:
    """Return whether a text is a sentence of the catalogue."""
    pattern = re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(CATALOGUE[key]))
    return re.fullmatch(pattern, text) is not None


def test_each_advice_is_followed_here_or_is_words_for_a_reason() -> None:
    rows = (*TO_DEVICE, *TO_HOST, *BETWEEN_DEVICES, *SINGLY, *WAITS)
    advice = {way.help for row in rows for way in row.ways}
    of_layers = {"cpu-compute.help", "cpu-compute.move", "cpu-compute.register"}
    assert {*FOLLOWED} | {*WORDS} == advice | of_layers
    assert {*FOLLOWED}.isdisjoint(WORDS)


@pytest.mark.parametrize("key", FOLLOWED)
def test_who_follows_an_advice_has_the_same_values_for_less(key: str, tmp_path: Path) -> None:
    text = text_of(FOLLOWED[key])
    proofs = Proofs(tmp_path / "program.py", text)
    (found,) = [finding for finding in proofs.warnings if mark_of(text, finding) == "1"]
    assert is_of(key, found.help), found.help
    by_hand = followed(text, "1")
    assert bool(found.edits) != bool(by_hand)
    assert proofs.why_not(found, by_hand) == ""
    assert proofs.warnings == []
    assert not [each for each in proofs.warnings if each.help == found.help]
