"""Suites: boards that belong together, and the modes in which they can be run. A suite is a TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oodbench.board.metrics import check_metrics
from oodbench.errors import UnknownName, UserError, did_you_mean
from oodbench.plugin.described import find_dataset, is_path
from oodbench.plugin.registry import names
from oodbench.settings.fields import configure
from oodbench.settings.option import Options, like, option
from oodbench.settings.space import Value, fixed_text
from oodbench.study.plan import Listed, Request, StudySpec, resolve
from oodbench.study.spec import Budget, Resources, Selecting, StudyOptions
from oodbench.suite.published import Figure, check_figures


@dataclass(frozen=True)
class Way:
    """How a mode tunes and trains a method, where that is not the usual way."""

    preset: str = ""
    model: str | None = None
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    fix: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Any] = field(default_factory=dict)  # of a sklearn:PATH estimator
    trials: int | None = None

    def then(self, other: Way) -> Way:
        """Both, where the other wins."""
        return Way(
            preset=other.preset or self.preset,
            model=other.model or self.model,
            model_settings={**self.model_settings, **other.model_settings},
            recipe={**self.recipe, **other.recipe},
            fix={**self.fix, **other.fix},
            space={**self.space, **other.space},
            trials=self.trials if other.trials is None else other.trials,
        )


@dataclass(frozen=True)
class Mode:
    name: str
    about: str
    trials: int | None
    mixed: bool  # methods may have unequal budgets, and are marked
    choose: str  # what gets a configuration of its own: the study, or each seed
    without: tuple[str, ...]  # methods it leaves out
    methods: Mapping[str, Way]  # on every board
    boards: Mapping[str, Mapping[str, Way]]  # on one board: name -> method -> way

    def way(self, board: str, method: str) -> Way:
        return self.methods.get(method, Way()).then(self.boards.get(board, {}).get(method, Way()))


@dataclass(frozen=True)
class Curve:
    """A hyper-parameter to vary: one study per method and value."""

    hyper_parameter: str
    values: tuple[Value, ...]
    mark: float | None = None  # a value to point out, and what it is
    mark_about: str = ""


@dataclass(frozen=True)
class BoardSpec:
    """Methods on the settings of one dataset, and what is shown of them."""

    name: str
    title: str
    dataset: str  # its name, or the path of its description
    settings: tuple[Mapping[str, Any], ...]
    methods: tuple[str, ...]  # or METHOD:PRESET, or sklearn:PATH
    metrics: tuple[str, ...] = ()  # none: the usual ones of the task
    trials: int | None = None
    curve: Curve | None = None
    published: tuple[Figure, ...] = ()
    figures: bool = False  # of the test environments

    @property
    def dataset_name(self) -> str:
        """As it is shown: of a described one, the name of the file."""
        return Path(self.dataset).stem if is_path(self.dataset) else self.dataset

    def dataset_id(self, settings: Mapping[str, Any]) -> str:
        """The dataset with what the board varies, defaults included."""
        return " ".join([self.dataset_name, *(f"{name}={value}" for name, value in settings.items())])


@dataclass(frozen=True)
class Suite:
    name: str  # as it was asked for: paper or ./mine.toml
    file: str  # as errors show it
    title: str
    about: str
    mode: str  # the one that is run unless another is asked for
    trials: int
    seeds: int
    selector: str
    boards: tuple[BoardSpec, ...]
    modes: Mapping[str, Mode]

    def find_mode(self, name: str | None) -> Mode:
        wanted = name or self.mode
        if wanted not in self.modes:
            raise UnknownName(f"mode of suite {self.name!r}", wanted, self.modes)
        return self.modes[wanted]

    def leave_out(self, methods: Sequence[str]) -> Suite:
        """The boards without these methods."""
        boards = (
            replace(board, methods=tuple(method for method in board.methods if method not in methods))
            for board in self.boards
        )
        return replace(self, boards=tuple(board for board in boards if board.methods))

    def narrow(self, methods: Sequence[str], datasets: Sequence[str]) -> Suite:
        """The boards with these methods and datasets only; all of them, where none is named."""
        every_method = dict.fromkeys(method for board in self.boards for method in board.methods)
        every_dataset = dict.fromkeys(board.dataset_name for board in self.boards)
        datasets = [Path(name).stem if is_path(name) else name for name in datasets]
        for kind, wanted, present in (("method", methods, every_method), ("dataset", datasets, every_dataset)):
            for name in wanted:
                if name not in present:
                    raise UnknownName(f"{kind} in suite {self.name!r}", name, present)
        boards = [
            replace(board, methods=tuple(method for method in board.methods if method in (methods or every_method)))
            for board in self.boards
            if board.dataset_name in (datasets or every_dataset)
        ]
        boards = [board for board in boards if board.methods]
        if not boards:
            raise UserError(f"no board of suite {self.name!r} has these methods on these datasets.")
        return replace(self, boards=tuple(boards))


def _twice_is_once(names: Sequence[str], flag: str) -> list[str]:
    return list(dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True)
class Overrides(Options):
    """What the user says instead of the suite."""

    methods: Sequence[str] = option(
        (), "A method, METHOD:PRESET or sklearn:PATH; several are compared. Narrows a suite.", name="--method",
        short="-m", check=_twice_is_once,
    )  # fmt: skip
    datasets: Sequence[str] = option(
        (), "A dataset; may be given several times. Narrows a suite.", name="--dataset", short="-d",
        check=_twice_is_once,
    )  # fmt: skip
    trials: int | None = like(Budget, "trials")
    seeds: int | None = like(Budget, "seeds")
    seed: int = like(Budget, "seed", 0)
    selector: str | None = like(Selecting, "selector")
    device: str = like(Resources, "device", "auto")
    mixed: bool = option(False, "Show studies with unequal budgets or data on one board, and mark them.")


@dataclass(frozen=True)
class Part:
    """One study of a suite: where it stands, and what is asked for."""

    board: BoardSpec
    settings: Mapping[str, Any]
    method: str
    point: Value | None  # of the curve
    spec: StudySpec


def expand(suite: Suite, mode: Mode, overrides: Overrides) -> list[Part]:
    """All studies of the suite in this mode, checked as far as can be without making data."""
    for board in suite.boards:
        if not is_path(board.dataset):
            _check_installed(suite, board)
    parts = [
        _part(suite, mode, board, settings, method, point, overrides)
        for board in suite.boards
        for settings in board.settings
        for method in board.methods
        for point in (board.curve.values if board.curve else (None,))
    ]
    if not (mode.mixed or overrides.mixed):
        _check_budgets(suite, mode, parts)
    for board in suite.boards:
        _check_metrics(suite, board)
        check_figures(board.published, find_dataset(board.dataset)[1], board.settings)
    return parts


def _part(
    suite: Suite,
    mode: Mode,
    board: BoardSpec,
    settings: Mapping[str, Any],
    method: str,
    point: Value | None,
    overrides: Overrides,
) -> Part:
    way = mode.way(board.name, method)
    fix, variant = dict(way.fix), []
    if way != Way() or mode.trials not in (None, suite.trials):
        variant.append(mode.name)
    if board.curve is not None and point is not None:
        fix[board.curve.hyper_parameter] = point
        variant.append(f"{board.curve.hyper_parameter}={fixed_text(point)}")
    wanted = (overrides.trials, way.trials, mode.trials, board.trials, suite.trials)
    try:
        asked = StudyOptions(
            settings=settings,
            model=way.model,
            model_settings=way.model_settings,
            recipe=way.recipe,
            fix=fix,
            space=way.space,
            trials=next(trials for trials in wanted if trials is not None),
            seeds=suite.seeds if overrides.seeds is None else overrides.seeds,
            seed=overrides.seed,
            selector=overrides.selector or suite.selector,
            choose=mode.choose,
        )
        name = f"{method}:{way.preset}" if way.preset else method
        (spec,) = resolve(Request([name], [board.dataset], asked, Listed(method, variant)))
    except UserError as error:
        if method in (*mode.methods, *mode.boards.get(board.name, ())):
            where = f"modes.{mode.name}, method {method!r} on board {board.name!r}"
        else:
            where = f"boards.{board.name}, method {method!r}"
        raise UserError(f"{suite.file}: {where}: {error}") from None
    return Part(board, settings, method, point, spec)


def _check_budgets(suite: Suite, mode: Mode, parts: Sequence[Part]) -> None:
    for board in suite.boards:
        trials = {part.method: part.spec.budget.trials for part in parts if part.board is board}
        if len(set(trials.values())) > 1:
            granted = ", ".join(f"{method} {number}" for method, number in trials.items())
            raise UserError(
                f"{suite.file}: mode {mode.name!r} grants unequal trials on board {board.name!r}: {granted}.\n"
                f"Give all the same, or have them marked: mixed = true in modes.{mode.name}, or --mixed."
            )


def _check_metrics(suite: Suite, board: BoardSpec) -> None:
    for settings in board.settings:
        task = configure(find_dataset(board.dataset)[1], settings, f"dataset {board.dataset_name!r}").task
        try:
            check_metrics(board.metrics, task)
        except UnknownName as error:
            raise UserError(f"{suite.file}: boards.{board.name}.metrics: {error}") from None


def _check_installed(suite: Suite, board: BoardSpec) -> None:
    name, installed = board.dataset, names("dataset")
    if name not in installed:
        raise UserError(
            f"{suite.file}: board {board.name!r} is on dataset {name!r}, which is not installed."
            f"{did_you_mean(name, installed)}\n"
            f"Install it, or narrow the suite with --dataset; installed: {', '.join(installed)}."
        )
