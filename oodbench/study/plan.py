"""From what the user asked for to studies: all of it is resolved and checked once, before anything starts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oodbench.engine.embeddings import check_embeddings
from oodbench.engine.models import Model
from oodbench.engine.recipe import Recipe
from oodbench.engine.trial import Setup
from oodbench.errors import BrokenPlugin, InvalidSetting, OodbenchError, UnknownName, UserError, WorkError, one_line
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.described import find_dataset
from oodbench.plugin.method import LossMethod, Method, Preset
from oodbench.plugin.registry import Kind, fault_of, find
from oodbench.settings.fields import as_dict, configure
from oodbench.settings.space import Fixed, OneEach, parse_fixed
from oodbench.study.data import SharedData
from oodbench.study.estimators import PREFIX, check_spaces, estimator_method
from oodbench.study.selectors import check_task, find_selector
from oodbench.study.spec import Budget, Selecting, StudyOptions
from oodbench.study.study import Study, deviations, name_dataset, unusual_choice

LEAST_STEPS = 16  # of a training that may be stopped at a sixteenth


@dataclass(frozen=True)
class Listed:
    """What labels say of a method in a suite, rather than its preset and all that it differs in."""

    method: str
    variant: Sequence[str]


@dataclass(frozen=True)
class Request:
    """What the user asked for, in the user's words: every method on every dataset, each in the same way."""

    methods: Sequence[str | type[Method]]  # or METHOD:PRESET, or sklearn:PATH
    datasets: Sequence[str | type[Dataset]]
    options: StudyOptions = field(default_factory=StudyOptions)
    listed: Listed | None = None


@dataclass(frozen=True, eq=False)
class StudySpec:
    """A study as it was asked for: everything but its device and its data."""

    asked: _Asked
    dataset_name: str
    dataset: Dataset
    setup: Setup
    budget: Budget
    selecting: Selecting
    fixed: Mapping[str, Fixed]
    label: str


@dataclass(frozen=True)
class _Asked:
    """A method as it was asked for."""

    shown: str  # srm or srm:released
    name: str
    method: Method
    preset: Preset

    def owns(self, owner: str) -> bool:
        return owner in ("", self.name, self.shown)


def resolve(request: Request) -> list[StudySpec]:
    """The studies that are asked for: the search, and its repeats."""
    options = request.options
    methods = _resolve_methods(request.methods, options.space)
    datasets = _resolve_datasets(request.datasets)
    if not methods or not datasets:
        raise UserError("name at least one method and one dataset.\n`oodbench list` shows what there is.")
    if isinstance(options.model, str):
        find("model", options.model)
    for name in options.fix:
        _check_fixed(name, methods)
    configured = {name: configure(cls, options.settings, f"dataset {name!r}") for name, cls in datasets.items()}
    return [
        _resolve_study(request, asked, name, dataset, repeat)
        for repeat in range(options.repeats)
        for name, dataset in configured.items()
        for asked in methods
    ]


def _resolve_study(request: Request, asked: _Asked, dataset_name: str, dataset: Dataset, repeat: int) -> StudySpec:
    options = request.options
    selecting = options.part(Selecting)
    check_task(find_selector(selecting.selector), selecting.selector, dataset.task)
    usual = _usual(dataset, asked)
    setup, by_hand = _setup(usual, options, dataset), _fixed(asked, options.fix)
    if options.scheduler != "none":
        _check_stoppable(asked, setup)
    if options.halves and isinstance(asked.method, LossMethod):
        _check_steps("--search halving", setup)
    budget = replace(options.part(Budget), repeat=repeat)
    fixed = _parsed(asked, asked.preset.fix) | by_hand
    _check_listed(asked, fixed, budget)
    return StudySpec(
        asked=asked,
        dataset_name=dataset_name,
        dataset=dataset,
        setup=setup,
        budget=budget,
        selecting=selecting,
        fixed=fixed,
        label=_label(asked, request.listed, selecting, deviations(setup, usual, by_hand, budget, selecting)),
    )


def plan(specs: Sequence[StudySpec], device: str) -> list[Study]:
    """The studies with their data. Those on the same dataset and seeds share it."""
    data: dict[str, SharedData] = {}
    studies = []
    for spec in specs:
        key = f"{spec.dataset_name} {as_dict(spec.dataset)} {spec.budget.data_seeds}"
        if key not in data:
            data[key] = _make_data(spec.dataset_name, spec.dataset, spec.budget)
        study = Study(
            method_name=spec.asked.name,
            method=spec.asked.method,
            dataset_name=spec.dataset_name,
            dataset=spec.dataset,
            setup=replace(spec.setup, device=device if spec.asked.method.on_gpu else "cpu"),
            budget=spec.budget,
            selector=spec.selecting.selector,
            data=data[key],
            fixed=spec.fixed,
            label=spec.label,
            choose=spec.selecting.choose,
            open_all=spec.selecting.opens_all,
        )
        study.check()
        studies.append(study)
    return studies


def dataset_id_of(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a dataset setting, as studies on it are recorded."""
    shown, cls = find_dataset(name)
    return name_dataset(shown, configure(cls, settings, f"dataset {shown!r}"))


def _make_data(name: str, dataset: Dataset, budget: Budget) -> SharedData:
    try:
        return SharedData(dataset, budget.data_seeds)
    except OodbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise WorkError(
            f"dataset {name!r} could not make its data: {one_line(error)}\n"
            f"`oodbench check {type(dataset).__module__.partition('.')[0]}` may tell more."
        ) from error


def _label(asked: _Asked, listed: Listed | None, selecting: Selecting, differing: list[str]) -> str:
    """The row on a leaderboard: the method, and in what it differs from the dataset's or the preset's usual way."""
    name = asked.shown
    if listed is not None:
        name, differing = listed.method, [*listed.variant, *unusual_choice(selecting.selector, selecting.choose)]
    return f"{name} ({', '.join(differing)})" if differing else name


def _check_stoppable(asked: _Asked, setup: Setup) -> None:
    if not isinstance(asked.method, LossMethod):
        raise UserError(
            f"--scheduler asha stops trainings by their gradient steps, and method {asked.name!r} makes none.\n"
            "Leave out --scheduler, or the method."
        )
    _check_steps("--scheduler asha", setup)


def _check_steps(asked: str, setup: Setup) -> None:
    if setup.recipe.steps < LEAST_STEPS:
        raise UserError(f"{asked} needs trainings of at least {LEAST_STEPS} steps, not {setup.recipe.steps}.")


def _resolve(kind: Kind, wanted: Sequence[str | type[Any]]) -> dict[str, type[Any]]:
    """Names and classes, each once: a name from the registry, or a class given by hand."""
    classes: dict[str, type[Any]] = {}
    for plugin in wanted:
        if isinstance(plugin, str):
            classes[plugin] = find(kind, plugin)
            continue
        fault = fault_of(kind, plugin)
        if fault:
            raise BrokenPlugin(f"{kind} {plugin.__name__} cannot be used: {fault}.")
        classes[snake_case(plugin.__name__)] = plugin
    return classes


def _resolve_datasets(wanted: Sequence[str | type[Dataset]]) -> dict[str, type[Dataset]]:
    """Those that a file describes are known by its name."""
    classes: dict[str, type[Dataset]] = {}
    for plugin in wanted:
        found = [find_dataset(plugin)] if isinstance(plugin, str) else _resolve("dataset", [plugin]).items()
        for name, cls in found:
            if name in classes and classes[name].description != cls.description:
                raise UserError(f"{cls.description} and {classes[name].description} have the same name.\nRename one.")
            classes[name] = cls
    return classes


def snake_case(name: str) -> str:
    """The name of a class as that of a plug-in: GroupDRO is group_dro."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _resolve_methods(wanted: Sequence[str | type[Method]], spaces: Mapping[str, Any]) -> list[_Asked]:
    methods = {asked.shown: asked for asked in (resolve_method(plugin, spaces) for plugin in wanted)}
    check_spaces(spaces, [type(asked.method) for asked in methods.values()])
    return list(methods.values())


def resolve_method(wanted: str | type[Method], spaces: Mapping[str, Any]) -> _Asked:
    """METHOD, METHOD:PRESET, sklearn:PATH, or a class given by hand."""
    if isinstance(wanted, str) and wanted.startswith(PREFIX):
        return _Asked(wanted, wanted, estimator_method(wanted, spaces)(), Preset(""))
    plain, _, preset_name = wanted.partition(":") if isinstance(wanted, str) else (wanted, "", "")
    ((name, cls),) = _resolve("method", [plain]).items()
    if not preset_name:
        return _Asked(name, name, cls(), Preset(""))
    if preset_name not in cls.presets:
        raise UnknownName(f"preset of method {name!r}", preset_name, cls.presets)
    return _Asked(f"{name}:{preset_name}", name, cls(), cls.presets[preset_name])


def _usual(dataset: Dataset, asked: _Asked) -> Setup:
    """The way of the dataset, or of the preset where it says otherwise."""
    recipe = configure(Recipe, asked.preset.recipe, f"preset {asked.shown!r}", base=dataset.recipe)
    return Setup(asked.preset.model or dataset.model, recipe)


def _setup(usual: Setup, options: StudyOptions, dataset: Dataset) -> Setup:
    model: Model = usual.model
    if isinstance(options.model, Model):
        model = options.model
    elif options.model is not None and options.model != model.name:
        model = find("model", options.model)()
    model = configure(type(model), options.model_settings, f"model {model.name!r}", base=model)
    recipe = configure(Recipe, options.recipe, "recipe", base=usual.recipe)
    if dataset.task == "regression" and recipe.loss == "cross_entropy":
        raise InvalidSetting("recipe: loss=cross_entropy is for classification.\nUse loss=squared or auto.")
    check_embeddings(model, dataset.categories)
    return Setup(model, recipe, usual.device)


def _check_fixed(fixed: str, methods: Sequence[_Asked]) -> None:
    """A hyper-parameter to fix, NAME or METHOD.NAME, must exist somewhere in this run."""
    owner, _, name = fixed.rpartition(".")
    candidates = [asked for asked in methods if asked.owns(owner)]
    if not candidates:
        asked_for = ", ".join(asked.name for asked in methods)
        raise UserError(f"--fix {fixed}: this run has no method {owner!r}.\nIt has: {asked_for}.")
    if not any(name in asked.method.search_space() for asked in candidates):
        parameters = {parameter for asked in candidates for parameter in asked.method.search_space()}
        raise UnknownName("hyper-parameter", name, parameters)


def _check_listed(asked: _Asked, fixed: Mapping[str, Fixed], budget: Budget) -> None:
    """Values for each configuration must be as many of every hyper-parameter, and enough."""
    counts = {name: len(value.values) for name, value in fixed.items() if isinstance(value, OneEach)}
    if not counts:
        return
    if budget.search != "random":
        raise UserError(
            f"method {asked.shown!r}: --search {budget.search} proposes configurations, and --fix lists them.\n"
            "Leave one of them out."
        )
    if len(set(counts.values())) > 1 or min(counts.values()) < budget.trials:
        listed = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise UserError(
            f"method {asked.shown!r}: there are {listed}, and {budget.trials} trials.\n"
            "List as many values of each, or ask for fewer --trials."
        )


def _fixed(asked: _Asked, fix: Mapping[str, Any]) -> dict[str, Fixed]:
    """What the user fixed of this method; what is said of one method goes before what is said of all."""
    space = asked.method.search_space()
    own = {}
    for fixed in sorted(fix, key=lambda fixed: "." in fixed):
        owner, _, name = fixed.rpartition(".")
        if asked.owns(owner) and name in space:
            own[name] = fix[fixed]
    return _parsed(asked, own)


def _parsed(asked: _Asked, fix: Mapping[str, Any]) -> dict[str, Fixed]:
    space = asked.method.search_space()
    return {name: parse_fixed(space, name, value, f"method {asked.shown!r}") for name, value in fix.items()}
