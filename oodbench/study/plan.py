"""From what the user asked for to studies, with everything checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from oodbench.engine.models import FAMILIES, Model
from oodbench.engine.recipe import Recipe
from oodbench.engine.trial import Setup
from oodbench.errors import BrokenPlugin, InvalidSetting, OodbenchError, UnknownName, UserError, WorkError, one_line
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.method import LossMethod, Method, Preset
from oodbench.plugin.registry import Kind, fault_of, find
from oodbench.settings.fields import as_dict, configure
from oodbench.settings.space import Fixed, parse_fixed
from oodbench.study.budget import Budget
from oodbench.study.data import SharedData
from oodbench.study.selectors import check_selector
from oodbench.study.study import ORACLE, Study, data_seeds, deviations, name_dataset

DEVICES = ("auto", "cpu", "cuda")
SEARCHES = ("random", "optuna")
SCHEDULERS = ("none", "asha")
LEAST_STEPS = 16  # of a training that may be stopped at a sixteenth


@dataclass(frozen=True)
class Request:
    """What the user asked for, in the user's words: every method on every dataset, each in the same way."""

    methods: Sequence[str | type[Method]]  # or METHOD:PRESET
    datasets: Sequence[str | type[Dataset]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    fix: Mapping[str, Any] = field(default_factory=dict)
    trials: int = 20
    seeds: int = 10
    seed: int = 0
    selector: str = "worst"
    device: str = "auto"
    search: str = "random"
    scheduler: str = "none"
    budget: float | None = None  # seconds a method
    repeat: int = 0  # of the whole search, on the same data
    variant: Sequence[str] | None = None  # what labels say of this way, rather than all that it differs in

    def check(self) -> None:
        """All that can be said without making data or starting anything."""
        check_options(self.trials, self.seeds, self.seed, self.selector, self.device)
        _check_search(self.search, self.scheduler, self.selector)
        if self.model is not None and self.model not in FAMILIES:
            raise UnknownName("model", self.model, FAMILIES)
        if not self.methods or not self.datasets:
            raise UserError("name at least one method and one dataset.\n`oodbench list` shows what there is.")
        methods = _resolve_methods(self.methods)
        for fixed in self.fix:
            _check_fixed(fixed, methods)
        for name, cls in _resolve("dataset", self.datasets).items():
            dataset = configure(cls, self.settings, f"dataset {name!r}")
            for method in methods:
                setup = _setup(_usual(dataset, method, "cpu"), self, dataset)
                if self.scheduler != "none":
                    _check_stoppable(method, setup)
                _fixed(method, self.fix)


def check_options(trials: int, seeds: int, seed: int, selector: str, device: str) -> None:
    for name, value, least in (("trials", trials, 1), ("seeds", seeds, 1), ("seed", seed, 0)):
        if value < least:
            raise UserError(f"--{name} must be at least {least}, not {value}.")
    check_selector(selector)
    if device not in DEVICES:
        raise UnknownName("device", device, DEVICES)


def _check_search(search: str, scheduler: str, selector: str) -> None:
    for kind, name, known in (("search", search, SEARCHES), ("scheduler", scheduler, SCHEDULERS)):
        if name not in known:
            raise UnknownName(kind, name, known)
    if search == "optuna" and find_spec("optuna") is None:
        raise UserError("--search optuna: optuna is not installed.\nInstall it with `pip install 'oodbench[optuna]'`.")
    if selector == "oracle" and (search, scheduler) != ("random", "none"):
        raise UserError(
            "--selector oracle does not go with --search or --scheduler: validation scores lead them.\n"
            "Use --selector mean or worst."
        )


def _check_stoppable(asked: _Asked, setup: Setup) -> None:
    if not isinstance(asked.method, LossMethod):
        raise UserError(
            f"--scheduler asha stops trainings by their gradient steps, and method {asked.name!r} makes none.\n"
            "Leave out --scheduler, or the method."
        )
    if setup.recipe.steps < LEAST_STEPS:
        raise UserError(f"--scheduler asha needs trainings of at least {LEAST_STEPS} steps, not {setup.recipe.steps}.")


@dataclass(frozen=True)
class _Asked:
    """A method as it was asked for."""

    shown: str  # srm or srm:released
    name: str
    method: Method
    preset: Preset

    def owns(self, owner: str) -> bool:
        return owner in ("", self.name, self.shown)


def plan(requests: Sequence[Request], device: str) -> list[list[Study]]:
    """The studies of each request. Those on the same dataset setting and seeds share its data."""
    made: dict[str, SharedData] = {}
    return [_studies(request, device, made) for request in requests]


def dataset_id_of(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a dataset setting, as studies on it are recorded."""
    return name_dataset(name, configure(find("dataset", name), settings, f"dataset {name!r}"))


def _studies(request: Request, device: str, made: dict[str, SharedData]) -> list[Study]:
    how = (request.repeat, request.search, request.scheduler, request.budget)
    budget = Budget(request.trials, request.seeds, request.seed, *how)
    studies = []
    for dataset_name, dataset_class in _resolve("dataset", request.datasets).items():
        dataset = configure(dataset_class, request.settings, f"dataset {dataset_name!r}")
        key = f"{dataset_name} {as_dict(dataset)} {data_seeds(budget)}"
        if key not in made:
            made[key] = _make_data(dataset_name, dataset, budget)
        for asked in _resolve_methods(request.methods):
            usual = _usual(dataset, asked, device)
            setup, by_hand = _setup(usual, request, dataset), _fixed(asked, request.fix)
            study = Study(
                method_name=asked.name,
                method=asked.method,
                dataset_name=dataset_name,
                dataset=dataset,
                setup=setup,
                budget=budget,
                selector=request.selector,
                data=made[key],
                fixed=_parsed(asked, asked.preset.fix) | by_hand,
                label=_label(asked, request, deviations(setup, usual, by_hand, budget, request.selector)),
            )
            study.check()
            studies.append(study)
    return studies


def _make_data(name: str, dataset: Dataset, budget: Budget) -> SharedData:
    try:
        return SharedData(dataset, data_seeds(budget))
    except OodbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise WorkError(
            f"dataset {name!r} could not make its data: {one_line(error)}\n"
            f"`oodbench check {type(dataset).__module__.partition('.')[0]}` may tell more."
        ) from error


def _label(asked: _Asked, request: Request, differing: list[str]) -> str:
    """The row on a leaderboard: the method, and in what it differs from the dataset's or the preset's usual way."""
    name = asked.shown
    if request.variant is not None:
        name, differing = asked.name, [*request.variant, *([ORACLE] if request.selector == "oracle" else [])]
    return f"{name} ({', '.join(differing)})" if differing else name


def _resolve(kind: Kind, wanted: Sequence[str | type[Any]]) -> dict[str, type[Any]]:
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
    return found


def _resolve_methods(wanted: Sequence[str | type[Method]]) -> list[_Asked]:
    found: dict[str, _Asked] = {}
    for one in wanted:
        plain, _, preset_name = one.partition(":") if isinstance(one, str) else (one, "", "")
        ((name, cls),) = _resolve("method", [plain]).items()
        preset = Preset("")
        if preset_name:
            if preset_name not in cls.presets:
                raise UnknownName(f"preset of method {name!r}", preset_name, cls.presets)
            preset = cls.presets[preset_name]
        shown = f"{name}:{preset_name}" if preset_name else name
        found[shown] = _Asked(shown, name, cls(), preset)
    return list(found.values())


def _usual(dataset: Dataset, asked: _Asked, device: str) -> Setup:
    """The way of the dataset, or of the preset where it says otherwise."""
    recipe = configure(Recipe, asked.preset.recipe, f"preset {asked.shown!r}", base=dataset.recipe)
    return Setup(asked.preset.model or dataset.model, recipe, device)


def _setup(usual: Setup, request: Request, dataset: Dataset) -> Setup:
    model: Model = usual.model
    if request.model is not None and request.model != model.name:
        model = FAMILIES[request.model]()
    model = configure(type(model), request.model_settings, f"model {model.name!r}", base=model)
    recipe = configure(Recipe, request.recipe, "recipe", base=usual.recipe)
    if dataset.task == "regression" and recipe.loss == "cross_entropy":
        raise InvalidSetting("recipe: loss=cross_entropy is for classification.\nUse loss=squared or auto.")
    return Setup(model, recipe, usual.device)


def _check_fixed(fixed: str, methods: Sequence[_Asked]) -> None:
    """A hyper-parameter to fix, NAME or METHOD.NAME, must exist somewhere in this run."""
    owner, _, name = fixed.rpartition(".")
    candidates = [asked for asked in methods if asked.owns(owner)]
    if not candidates:
        raise UnknownName("method in --fix", owner, [asked.name for asked in methods])
    if not any(name in asked.method.search_space() for asked in candidates):
        known = {parameter for asked in candidates for parameter in asked.method.search_space()}
        raise UnknownName("hyper-parameter", name, known)


def _fixed(asked: _Asked, fix: Mapping[str, Any]) -> dict[str, Fixed]:
    """What the user fixed of this method; what is said of one method goes before what is said of all."""
    space = asked.method.search_space()
    mine = {}
    for fixed in sorted(fix, key=lambda fixed: "." in fixed):
        owner, _, name = fixed.rpartition(".")
        if asked.owns(owner) and name in space:
            mine[name] = fix[fixed]
    return _parsed(asked, mine)


def _parsed(asked: _Asked, fix: Mapping[str, Any]) -> dict[str, Fixed]:
    space = asked.method.search_space()
    return {name: parse_fixed(space, name, value, f"method {asked.shown!r}") for name, value in fix.items()}
