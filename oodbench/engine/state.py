"""What a method keeps for each trial from step to step: fresh for every training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oodbench.engine.tensor import Tensor
from oodbench.errors import TrainingFailed


class State:
    """Tensors [trial, ...] by name: `rows.state.q`. What is set is detached; its shape stays that of `start`.

    Examples:
        >>> rows.state.q = normalize(rows.state.q * (hp.step.unsqueeze(-1) * risks).exp())
    """

    _method: str
    _tensors: dict[str, Tensor]

    def __init__(self, method: str, tensors: Mapping[str, Any], trials: int) -> None:
        if not isinstance(tensors, Mapping):
            raise TrainingFailed(f"{method}.start must return a dict of tensors, not {type(tensors).__name__}.")
        object.__setattr__(self, "_method", method)
        object.__setattr__(self, "_tensors", {name: _checked(method, name, tensors[name], trials) for name in tensors})

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """All of them, by name."""
        return self._tensors

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise AttributeError(self._no_such(name)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._tensors:
            raise AttributeError(self._no_such(name))
        before = self._tensors[name]
        self._tensors[name] = _checked(self._method, name, value, len(before))
        if value.shape != before.shape:
            raise TrainingFailed(
                f"{self._method} sets rows.state.{name} to shape {tuple(value.shape)}; "
                f"start made it {tuple(before.shape)}."
            )

    def _no_such(self, name: str) -> str:
        return f"there is no state {name!r}: return it from start(self, rows, hp) as a tensor [trial, ...]"


def _checked(method: str, name: str, value: Any, trials: int) -> Tensor:
    from torch import Tensor as TorchTensor

    if not isinstance(value, TorchTensor):
        raise TrainingFailed(f"{method}: state {name!r} must be a tensor [trial, ...], not {type(value).__name__}.")
    if value.dim() == 0 or len(value) != trials:
        raise TrainingFailed(
            f"{method}: state {name!r} must have one entry per trial, shape ({trials}, ...), not {tuple(value.shape)}."
        )
    return value.detach()
