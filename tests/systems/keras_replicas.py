"""Keras 3.6.0 on torch under DataParallel (keras #20415): the replicas share the variables. The real package."""

from __future__ import annotations

import os

import torch


def run(*devices: str) -> None:
    os.environ["KERAS_BACKEND"] = "torch"  # Keras chooses backend and device when it is imported
    import keras

    torch.manual_seed(0)
    model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(16), keras.layers.Dense(4)])
    net = torch.nn.DataParallel(model, device_ids=list(devices))
    inputs = torch.randn(8, 32, device=devices[0])
    outputs = net(inputs)
    assert outputs.shape == (8, 4)
