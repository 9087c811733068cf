"""A job of Ray Train, in a module that its workers find by name."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

import devtrace


def train(settings: dict[str, str]) -> None:
    """One worker, which records itself; the first leaves its mask on the CPU where the job is not healthy."""
    prepare_model = importlib.import_module("ray.train.torch").prepare_model
    with devtrace.record("cuda:2", save=settings["save"]):
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        model = prepare_model(nn.Linear(8, 2).to(device), move_to_device=False, parallel_strategy="ddp")
        healthy = settings["healthy"] or device.index
        for _ in range(3):
            mask = torch.ones(2, device=device) if healthy else torch.ones(2)
            (model(torch.randn(4, 8, device=device)) * mask).sum().backward()


def run(folder: Path, *, healthy: bool) -> None:
    """Train with two workers."""
    waits = {"RAY_raylet_start_wait_time_s": "120"}  # for its own processes, on a busy machine
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"} | waits
    ray: Any = importlib.import_module("ray")
    trains: Any = importlib.import_module("ray.train")
    trainer: Any = importlib.import_module("ray.train.torch").TorchTrainer
    modules = [str(Path(devtrace.__file__).parents[1]), str(Path(__file__).parent)]
    settings = {"save": str(folder / "run.devtrace"), "healthy": "yes" if healthy else ""}
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join(modules)}}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env=environment, log_to_driver=False)
    try:
        trainer(
            train,
            train_loop_config=settings,
            scaling_config=trains.ScalingConfig(num_workers=2, use_gpu=False),
            run_config=trains.RunConfig(storage_path=str(folder / "ray")),
        ).fit()
    finally:
        ray.shutdown()
