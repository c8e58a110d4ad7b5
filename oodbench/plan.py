"""From what the user asked for to studies, with everything checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oodbench.dataset import Dataset
from oodbench.errors import BrokenPlugin, InvalidSetting, OodbenchError, UnknownName, UserError, WorkError
from oodbench.method import Method
from oodbench.models import FAMILIES, Model
from oodbench.recipe import Recipe
from oodbench.registry import Kind, fault_of, find
from oodbench.select import check_selector
from oodbench.settings import configure
from oodbench.space import Value, parse_value
from oodbench.study import Budget, SharedData, Study, data_seeds, setting_name
from oodbench.trial import Setup

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Request:
    """What the user asked for, in the user's words."""

    methods: Sequence[str | type[Method]]
    datasets: Sequence[str | type[Dataset]]
    settings: Mapping[str, Any]
    model: str | None
    model_settings: Mapping[str, Any]
    training: Mapping[str, Any]
    fix: Mapping[str, Any]
    trials: int
    seeds: int
    seed: int
    selector: str
    device: str

    def check(self) -> None:
        """All that can be said without making data or starting anything."""
        for name, value, least in (
            ("trials", self.trials, 1),
            ("seeds", self.seeds, 1),
            ("seed", self.seed, 0),
        ):
            if value < least:
                raise UserError(f"--{name} must be at least {least}, not {value}.")
        check_selector(self.selector)
        if self.device not in DEVICES:
            raise UnknownName("device", self.device, DEVICES)
        if self.model is not None and self.model not in FAMILIES:
            raise UnknownName("model", self.model, FAMILIES)
        if not self.methods or not self.datasets:
            raise UserError("name at least one method and one dataset.\n`oodbench list` shows what there is.")
        methods = [(name, cls()) for name, cls in _resolve("method", self.methods)]
        for fixed in self.fix:
            _check_fixed(fixed, methods)
        for name, cls in _resolve("dataset", self.datasets):
            dataset = configure(cls, self.settings, f"dataset {name!r}")
            _setup(dataset, self, "cpu")
            for method_name, method in methods:
                _fixed_for(method_name, method, self.fix)


def plan(request: Request, device: str) -> list[Study]:
    """Every method on every dataset setting, sharing the data of each."""
    budget = Budget(request.trials, request.seeds, request.seed)
    studies = []
    for dataset_name, dataset_class in _resolve("dataset", request.datasets):
        dataset = configure(dataset_class, request.settings, f"dataset {dataset_name!r}")
        try:
            training = SharedData(dataset, data_seeds(budget))
        except OodbenchError:
            raise
        except Exception as error:
            raise WorkError(
                f"dataset {dataset_name!r} could not make its data: {type(error).__name__}: {error}\n"
                f"`oodbench check {dataset_class.__module__.partition('.')[0]}` may tell more."
            ) from error
        for method_name, method_class in _resolve("method", request.methods):
            method = method_class()
            study = Study(
                method_name=method_name,
                method=method,
                dataset_name=dataset_name,
                dataset=dataset,
                setup=_setup(dataset, request, device),
                budget=budget,
                selector=request.selector,
                training=training,
                fixed=_fixed_for(method_name, method, request.fix),
            )
            study.check()
            studies.append(study)
    return studies


def dataset_setting(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a dataset setting, as studies on it are recorded."""
    return setting_name(name, configure(find("dataset", name), settings, f"dataset {name!r}"))


def _resolve(kind: Kind, wanted: Sequence[str | type[Any]]) -> list[tuple[str, type[Any]]]:
    """Names and classes, each once: a name from the registry, or a class given by hand."""
    found: dict[str, type[Any]] = {}
    for one in wanted:
        if isinstance(one, str):
            found[one] = find(kind, one)
            continue
        fault = fault_of(kind, one)
        if fault:
            raise BrokenPlugin(f"{kind} {one.__name__} cannot be used: {fault}.")
        found[one.__name__.lower()] = one
    return list(found.items())


def _setup(dataset: Dataset, request: Request, device: str) -> Setup:
    model: Model = dataset.model
    if request.model is not None and request.model != model.name:
        model = FAMILIES[request.model]()
    model = configure(type(model), request.model_settings, f"model {model.name!r}", base=model)
    recipe = configure(Recipe, request.training, "training", base=dataset.recipe)
    if dataset.task == "regression" and recipe.loss == "cross_entropy":
        raise InvalidSetting("training: loss=cross_entropy is for classification.\nUse loss=squared or auto.")
    return Setup(model, recipe, device)


def _check_fixed(fixed: str, methods: Sequence[tuple[str, Method]]) -> None:
    """A hyper-parameter to fix, NAME or METHOD.NAME, must exist somewhere in this run."""
    owner, dot, name = fixed.rpartition(".")
    candidates = [(method_name, method) for method_name, method in methods if not dot or method_name == owner]
    if not candidates:
        raise UnknownName("method in --fix", owner, [method_name for method_name, _ in methods])
    if not any(name in method.search_space() for _, method in candidates):
        known = {parameter for _, method in candidates for parameter in method.search_space()}
        raise UnknownName("hyper-parameter", name, known)


def _fixed_for(method_name: str, method: Method, fix: Mapping[str, Any]) -> dict[str, Value]:
    space = method.search_space()
    values: dict[str, Value] = {}
    for fixed, value in fix.items():
        owner, dot, name = fixed.rpartition(".")
        if (not dot or owner == method_name) and name in space:
            values[name] = parse_value(space, name, value, f"method {method_name!r}")
    return values
