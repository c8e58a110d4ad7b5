"""A pretend GPU: real values, on the CPU, marked as if they were on a device. What mixes both, or takes the values of
the device without fetching them, fails as it would there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from oodbench.plugin.traffic import Traffic

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
FETCHING = {"numpy", "__array__"}  # what the CPU alone can do
INDEXING = {"__getitem__", "__setitem__"}  # indices may be on the CPU


class Mixed(RuntimeError):
    """What a GPU would refuse."""


class PretendGpu(TorchFunctionMode):
    """While it is entered, `cuda` is the pretend device; `traffic` counts what is copied and waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.traffic = Traffic()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        name = _name(func)
        given = [value for value in _leaves((args, kwargs or {})) if isinstance(value, Tensor)]
        on_gpu = [value for value in given if _is_marked(value)]
        if name == ".device":
            return GPU if on_gpu else CPU
        if name == ".is_cuda":
            return bool(on_gpu)
        if name in FETCHING and on_gpu:
            raise Mixed("takes the values of a tensor on the GPU: fetch them first, with .cpu()")
        asked = _asked_device(name, args, kwargs or {})
        if asked is None and on_gpu and name not in INDEXING and any(_is_elsewhere(value) for value in given):
            raise Mixed(
                f"mixes tensors of the GPU and the CPU in {name}: make new tensors on the device of the rows, "
                "as in rows.y.new_zeros(...) or torch.zeros(..., device=rows.y.device)"
            )
        if name == "__iter__":
            return iter(self.__torch_function__(Tensor.unbind, types, args))
        self.traffic.count(name, args, kwargs or {}, on_gpu, asked)
        args, kwargs = _on_cpu(args), _on_cpu(dict(kwargs or {}))
        result = func(*args, **kwargs)
        gpu = bool(on_gpu) if asked is None else asked == "cuda"
        for value in _leaves(result):
            if isinstance(value, Tensor) and gpu != _is_marked(value) and not (gpu is False and asked is None):
                if asked is not None and any(value is one for one in given):
                    return _marked(value.view_as(value), gpu)
                _marked(value, gpu)
        return result


def _name(func: Any) -> str:
    """`.device` of a getter, else the name of the function."""
    if getattr(func, "__name__", "") == "__get__":
        return f".{getattr(func.__self__, '__name__', '')}"
    return str(getattr(func, "__name__", func))


def _asked_device(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """The kind of device that a call names, if it does."""
    if name in ("cpu", "cuda"):
        return name
    candidates = [kwargs.get("device"), *(args[1:2] if name == "to" else ())]
    for value in candidates:
        if isinstance(value, torch.device):
            return value.type
        if isinstance(value, str):
            return torch.device(value).type
        if isinstance(value, Tensor):
            return "cuda" if _is_marked(value) else "cpu"
    return None


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda")):
        return CPU
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_on_cpu, value))
    if isinstance(value, dict):
        return {key: _on_cpu(one) for key, one in value.items()}
    return value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        yield value
        return
    parts: Iterable[Any] = value
    for part in parts:
        yield from _leaves(part)


def _is_marked(value: Tensor) -> bool:
    return bool(value.__dict__.get("_pretend", False))


def _is_elsewhere(value: Tensor) -> bool:
    """A tensor of the CPU; a single number may come from there."""
    return not _is_marked(value) and torch._C.TensorBase.dim(value) > 0


def _marked(value: Tensor, gpu: bool) -> Tensor:
    value.__dict__["_pretend"] = gpu
    return value
