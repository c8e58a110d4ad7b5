"""Plug-ins, found through the entry-point groups `oodbench.methods`, `oodbench.datasets`, `oodbench.models`,
`oodbench.metrics` and `oodbench.selectors`.

A plug-in is loaded when it is asked for. A broken plug-in stays in the list, with the reason, and does not
affect others.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Literal, get_args

from oodbench.engine.data import TASKS
from oodbench.engine.metric import TAKEN, Metric
from oodbench.engine.models import Model
from oodbench.engine.recipe import Recipe
from oodbench.errors import BrokenPlugin, InvalidSetting, UnknownName, one_line
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.method import INFORMATION, LossMethod, Method, Preset
from oodbench.plugin.points import points
from oodbench.plugin.selector import Selector, sees_target
from oodbench.settings.fields import configure
from oodbench.settings.space import Dimension, Space, parse_fixed

Kind = Literal["method", "dataset", "model", "metric", "selector"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Plugin:
    """A method, dataset, model family, metric or selector as installed: usable, or broken for a reason."""

    kind: Kind
    name: str
    source: str  # distribution it comes from
    cls: Any  # None where it is broken; a metric is no class, but the metric itself
    broken: str | None = None

    @property
    def summary(self) -> str:
        own = None if self.cls is None else self.cls.__doc__  # not that of a base class
        return inspect.cleandoc(own or "").partition("\n")[0]


def names(kind: Kind) -> list[str]:
    return sorted({point.name for point in points(kind)})


def names_own_first(kind: Kind) -> list[str]:
    """The built-in plug-ins first, so that installing others does not move them."""
    own = {point.name for point in points(kind) if _distribution(point) == "oodbench"}
    return sorted(names(kind), key=lambda name: (name not in own, name))


def plugins(kind: Kind) -> list[Plugin]:
    by_name: dict[str, list[EntryPoint]] = {}
    for point in points(kind):
        by_name.setdefault(point.name, []).append(point)
    return [_load(kind, name, by_name[name]) for name in sorted(by_name)]


def load(kind: Kind, name: str) -> Plugin:
    """The plug-in of that name, perhaps broken; UnknownName if none is installed."""
    of_name = [point for point in points(kind) if point.name == name]
    if not of_name:
        raise UnknownName(kind, name, names(kind))
    return _load(kind, name, of_name)


def _load(kind: Kind, name: str, of_name: Sequence[EntryPoint]) -> Plugin:
    source = ", ".join(sorted({_distribution(point) for point in of_name}))
    if len({point.value for point in of_name}) > 1 or len({_distribution(point) for point in of_name}) > 1:
        where = " and ".join(f"{point.value} ({_distribution(point)})" for point in of_name)
        return Plugin(kind, name, source, None, f"two plug-ins have this name: {where}; uninstall or rename one")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
            cls = of_name[0].load()
    except (Exception, SystemExit) as error:
        return Plugin(kind, name, source, None, f"importing {of_name[0].value} failed: {one_line(error)}")
    fault = fault_of(kind, cls)
    if kind == "metric" and (name in TAKEN or not name.isidentifier()):
        fault = f"a metric cannot be called {name!r}: " + ("results have that" if name in TAKEN else "it is no name")
    return Plugin(kind, name, source, None if fault else cls, fault)


def find(kind: Kind, name: str) -> Any:
    """The class, or the metric, of that name; BrokenPlugin with the reason if it cannot be used."""
    plugin = load(kind, name)
    if plugin.cls is None:
        raise BrokenPlugin(f"{kind} {name!r} (from {plugin.source}) is broken: {plugin.broken}.")
    return plugin.cls


def fault_of(kind: Kind, cls: Any) -> str | None:
    """Why a class or metric does not satisfy the interface, or None."""
    if kind == "metric":
        return None if isinstance(cls, Metric) else f"{cls!r} is not a function with @oodbench.metric(...) above it"
    if not inspect.isclass(cls):
        return f"{cls!r} is not a class"
    try:
        return FAULTS[kind](cls)
    except (Exception, SystemExit) as error:  # a property or constructor of the plug-in's own raised
        return f"{cls.__name__} cannot be inspected: {one_line(error)}"


def _method_fault(cls: type[Any]) -> str | None:
    name = cls.__name__
    if not issubclass(cls, Method):
        return f"{name} is not a subclass of oodbench.Method or oodbench.LossMethod"
    if issubclass(cls, LossMethod):
        doors = ("loss", "direction", "fit_pack")
        if all(getattr(cls, door) is getattr(LossMethod, door) for door in doors):
            return f"{name} defines neither loss, direction nor fit_pack"
    elif cls.fit is Method.fit and cls.fit_pack is Method.fit_pack:
        return f"{name} defines neither fit nor fit_pack"
    beyond = set(cls.needs) - INFORMATION
    if beyond:
        return f"{name} needs {', '.join(sorted(beyond))}, but a method can need only {', '.join(sorted(INFORMATION))}"
    if not cls.tasks or not set(cls.tasks) <= set(TASKS):
        return f"{name}.tasks must be some of {', '.join(TASKS)}"
    return _space_fault(cls)


def _space_fault(cls: type[Method]) -> str | None:
    name = cls.__name__
    if not isinstance(cls.space, Mapping) or not isinstance(cls.presets, Mapping):
        return f"{name}.space and {name}.presets must be dictionaries"
    for key, dimension in cls.space.items():
        if not (isinstance(key, str) and key.isidentifier()) or not isinstance(dimension, Dimension):
            return f"{name}.space[{key!r}] is not a name with a dimension such as oodbench.Uniform"
    try:
        space = cls().search_space()
    except TypeError as error:
        return f"{name}() cannot be created without arguments: {error}"
    unknown = set(cls.uses) - set(space)
    if unknown:
        return f"{name} uses {', '.join(sorted(unknown))}, which is not in its search space"
    return next(filter(None, (_preset_fault(name, key, preset, space) for key, preset in cls.presets.items())), None)


def _preset_fault(owner: str, name: Any, preset: Any, space: Space) -> str | None:
    where = f"{owner}.presets[{name!r}]"
    if not (isinstance(name, str) and name.isidentifier()) or not isinstance(preset, Preset):
        return f"{where} is not a name with an oodbench.Preset"
    if preset.model is not None and not isinstance(preset.model, Model):
        return f"{where}.model is not a model such as oodbench.Mlp()"
    try:
        for key, value in preset.fix.items():
            parse_fixed(space, key, value, "its method")
        configure(Recipe, preset.recipe, "recipe")
    except InvalidSetting as error:
        return f"{where} does not fit: {' '.join(str(error).split())}".rstrip(".")
    return None


def _dataset_fault(cls: type[Any]) -> str | None:
    name = cls.__name__
    if not issubclass(cls, Dataset):
        return f"{name} is not a subclass of oodbench.Dataset"
    fault = _definition_fault(cls)
    if fault:
        return fault
    if not isinstance(cls.task, property) and cls.task not in TASKS:
        return f"{name}.task is neither 'regression' nor 'classification'"
    if not isinstance(cls.model, Model) or not isinstance(cls.recipe, Recipe):
        return f"{name}.model and {name}.recipe must be a model such as oodbench.Linear() and an oodbench.Recipe()"
    try:
        facts = cls().facts
    except (TypeError, ValueError) as error:
        return f"{name}() does not work with its default settings: {error}"
    if not isinstance(facts, Mapping) or not all(isinstance(value, int | float) for value in facts.values()):
        return f"{name}.facts must be a dictionary of numbers"
    return None


def _definition_fault(cls: type[Any]) -> str | None:
    """Of what must be a frozen dataclass that defines everything."""
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        return f"{cls.__name__} does not define {', '.join(missing)}"
    if not getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        return f"{cls.__name__} is not a frozen dataclass: add @dataclass(frozen=True)"
    return None


def _model_fault(cls: type[Any]) -> str | None:
    name = cls.__name__
    if not issubclass(cls, Model):
        return f"{name} is not a subclass of a model family such as oodbench.Mlp or oodbench.TorchModel"
    fault = _definition_fault(cls)
    if fault:
        return fault
    if not isinstance(getattr(cls, "name", None), str):
        return f"{name}.name is not a text"
    cls()  # with its default settings
    return None


def _selector_fault(cls: type[Any]) -> str | None:
    name = cls.__name__
    if not issubclass(cls, Selector):
        return f"{name} is not a subclass of oodbench.Selector"
    if cls.combine is Selector.combine and cls.by_seed is Selector.by_seed:
        return f"{name} defines neither combine nor by_seed"
    if cls.sees_test and not cls.__module__.startswith("oodbench."):
        return f"{name} sees test data: only the built-in oracle may"
    fault = _definition_fault(cls)
    if not fault and sees_target(cls()) and cls.estimator is Selector.estimator:
        return f"{name} sees test rows and does not define estimator"
    return fault


FAULTS: dict[str, Callable[[type[Any]], str | None]] = {
    "method": _method_fault,
    "dataset": _dataset_fault,
    "model": _model_fault,
    "selector": _selector_fault,
}


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown distribution"
