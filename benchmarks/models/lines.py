"""What each program prints: a line for each call, what came out or what was raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch


def print_lines(calls: Mapping[str, Callable[[], object]], x: torch.Tensor) -> None:
    """Forward and backward of each; `x` is what they are given, whose gradient is told too."""
    for name, call in calls.items():
        torch.manual_seed(0)
        x.grad = None
        try:
            out = call()
            first = out[0] if isinstance(out, tuple | list) else out
            if first.requires_grad:
                first.square().sum().backward()
            grad = x.grad.double().abs().sum().item() if x.grad is not None else 0.0
            print(name, first.double().sum().item(), grad, flush=True)
        except Exception as error:
            print(name, type(error).__name__, str(error)[:60], flush=True)
