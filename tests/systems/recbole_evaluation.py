"""RecBole 1.2.0 with sampled evaluation (RecBole #1984): training passes, the first validation fails.

The real package. It is older than the numpy and torch of today; the shims give it the names that it expects and have
nothing to do with the bug.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import types
import warnings
from pathlib import Path

import numpy as np
import torch


def shim() -> None:
    warnings.simplefilter("ignore")
    for name, old in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}.items():
        if not hasattr(np, name):
            setattr(np, name, old)
    for name in ("ray", "ray.tune", "kmeans_pytorch"):  # extras that none of these models uses
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["ray"].tune = sys.modules["ray.tune"]
    sys.modules["kmeans_pytorch"].kmeans = None
    load = torch.load
    torch.load = lambda *args, **options: load(*args, **{"weights_only": False, **options})  # checkpoints hold a Config


def dataset(folder: Path) -> None:
    """30 users, 40 items, 12 ratings each."""
    draw = random.Random(0)
    rows = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
    for user in range(30):
        rows += [f"{user}\t{item}\t{draw.randint(1, 5)}\t{at}" for at, item in enumerate(draw.sample(range(40), 12))]
    (folder / "tiny").mkdir()
    (folder / "tiny" / "tiny.inter").write_text("\n".join(rows))


def run(model: str, mode: str = "uni20") -> None:
    shim()
    from recbole.quick_start import run_recbole

    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)  # it writes its logs where it runs
    dataset(folder)
    settings = {
        "data_path": str(folder),
        "epochs": 2,
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
    run_recbole(model=model, dataset="tiny", config_dict=settings, saved=True)
