"""The device of a pack: how it computes, and how numbers get there."""

from __future__ import annotations

import torch
from torch import Tensor


def prepare(name: str) -> torch.device:
    """The device of that name. A GPU computes in full single precision: TF32 has 10 bits where the CPU has 23."""
    device = torch.device(name)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    return device


def send(numbers: Tensor, device: torch.device) -> Tensor:
    """Numbers of the CPU on the device, without waiting for it: they are copied before this returns, as they are in
    ordinary memory, and the device takes them when it gets there."""
    return numbers.to(device, non_blocking=True)
