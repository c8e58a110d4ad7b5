"""Conformance checks for plug-in authors: the plug-in is used as the harness uses it.

from oodbench.plugin.testing import check_method

def test_my_method():
    check_method(MyMethod)
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import Environment, Task, TrainingRows
from oodbench.engine.models import Linear, Mlp
from oodbench.engine.predictor import Predictor
from oodbench.engine.recipe import Recipe
from oodbench.engine.rows import Hparams, Rows, per_trial
from oodbench.engine.scoring import score
from oodbench.engine.tensor import Tensor
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial, training_entropy
from oodbench.errors import UserError, one_line
from oodbench.plugin.dataset import Dataset, fault_in, fault_in_encoder, fingerprint
from oodbench.plugin.method import LossMethod, Method
from oodbench.plugin.points import points
from oodbench.plugin.registry import Plugin, fault_of, load
from oodbench.settings.fields import configure
from oodbench.settings.space import draw_configuration

SETUP = Setup(Mlp(width=(8,)), Recipe(steps=40))
IN_BATCHES = Setup(Mlp(width=(8,)), Recipe(steps=20, batch=32))
ON_GPU = Setup(Mlp(width=(8,)), Recipe(steps=4, batch=32), "cuda")
LINEAR = Setup(Linear(), Recipe(steps=20))
TOLERANCE = 1e-3  # of predictions of a trial alone and in a pack, relative to their spread

Check = tuple[str, Callable[[], None]]


def check_method(cls: type[Method]) -> None:
    """Raise AssertionError, with the reason, unless the method can be used by the harness.

    Examples:
        >>> def test_my_method():
        ...     check_method(MyMethod)
    """
    for _, check in method_checks(cls):
        check()


def check_dataset(cls: type[Dataset]) -> None:
    """Raise AssertionError, with the reason, unless the dataset can be used by the harness.

    Examples:
        >>> def test_my_dataset():
        ...     check_dataset(MyDataset)
    """
    for _, check in dataset_checks(cls):
        check()


def check_package(package: str) -> Iterator[tuple[Plugin, str, str | None]]:
    """(plug-in, what was checked, what is wrong or None) for every plug-in of an installed distribution."""
    try:
        name = distribution(package).name
    except (PackageNotFoundError, ValueError):  # no name at all is a ValueError
        raise UserError(f"no distribution {package!r} is installed.\nInstall it first: pip install -e PATH.") from None
    plugins = [
        load(kind, point.name)
        for kind in ("method", "dataset")
        for point in points(kind)
        if point.dist is not None and point.dist.name == name
    ]
    if not plugins:
        raise UserError(
            f"{package!r} has no entry points in oodbench.methods or oodbench.datasets.\n"
            "Add them to its pyproject.toml; `oodbench new method NAME` shows how."
        )
    for plugin in plugins:
        if plugin.cls is None:
            yield plugin, "can be loaded", plugin.broken
            continue
        checks = method_checks(plugin.cls) if plugin.kind == "method" else dataset_checks(plugin.cls)
        for title, check in checks:
            try:
                with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
                    check()
            except AssertionError as error:
                yield plugin, title, " ".join(str(error).split())
            except (Exception, SystemExit) as error:
                yield plugin, title, one_line(error)
            else:
                yield plugin, title, None


class _MethodChecks:
    """What is asked of a method; each raises AssertionError with the reason."""

    def __init__(self, cls: type[Method]) -> None:
        self.cls = cls

    def interface(self) -> None:
        fault = fault_of("method", self.cls)
        assert fault is None, fault

    def trains(self, task: Task, classes: int, setup: Setup) -> None:
        train, validation = self._problem(task, classes)
        trials = _trials(self.cls)
        for trial, predictor in zip(trials, _fit(self.cls(), train, trials, setup), strict=True):
            values = score(predictor, validation, task, classes)
            assert np.isfinite(values["error"]), f"the error is {values['error']} with {dict(trial.hparams)}"

    def leaves_rows_alone(self) -> None:
        """Before the other checks: rows that were changed make them fail for reasons that lead nowhere."""
        train, _ = self._problem()
        before = {seed: rows.copy() for seed, rows in train.items()}
        for setup in (IN_BATCHES, SETUP):
            _fit(watched(self.cls)(), train, _trials(self.cls)[:2], setup)
        for seed, rows in train.items():
            same = np.array_equal(before[seed].x, rows.x) and np.array_equal(before[seed].y, rows.y)
            assert same, "the training rows were changed: work on a copy"

    def repeats(self) -> None:
        train, validation = self._problem()
        once, again = (_fit(self.cls(), train, _trials(self.cls)[:1])[0].predict(validation.x) for _ in range(2))
        assert np.array_equal(once, again), "the same trial trained twice gives different predictions: use the seed"

    def begins_anew(self) -> None:
        """One instance trains many packs: what it keeps on itself leaks from one into the next."""
        train, validation = self._problem()
        first, second = _trials(self.cls)[:1], _trials(self.cls)[1:2]
        used = self.cls()
        _fit(used, train, first)
        after, fresh = (_fit(method, train, second)[0].predict(validation.x) for method in (used, self.cls()))
        assert np.array_equal(after, fresh), (
            "a second pack on the same instance gives other predictions than on a new one: keep nothing on self; "
            "return what is kept from step to step from start(self, rows, hp), and use it as rows.state"
        )

    def alone_or_packed(self, setup: Setup) -> None:
        train, validation = self._problem()
        trials = _trials(self.cls)
        packed = _fit(self.cls(), train, trials, setup)
        for trial, predictor in list(zip(trials, packed, strict=True))[::2]:  # every configuration, both seeds
            alone = _fit(self.cls(), train, [trial], setup)[0].predict(validation.x)
            gap = _distance(alone, predictor.predict(validation.x))
            assert gap < TOLERANCE, (
                f"trial {trial.configuration} alone and in a pack differ by {gap:.2g} of their spread: "
                "reduce over rows and units only, never over trials, and draw chance with rows.uniform and its like"
            )

    def counts_weights(self) -> None:
        """A method that says so, and does not, would be compared with others on other terms."""
        train, validation = self._problem()
        weighted = {
            seed: rows.weighted(np.where(rows.y > np.median(rows.y), 20.0, 1.0)) for seed, rows in train.items()
        }
        trial = _trials(self.cls)[:1]
        (plain,), (other,) = (_fit(self.cls(), rows, trial) for rows in (train, weighted))
        before, after = (getattr(model, "outputs", model.predict)(validation.x) for model in (plain, other))
        assert not np.array_equal(before, after), (
            "weights of rows change nothing: use rows.risk(), not rows.losses.mean(-1), or in fit train.weights; "
            "or set takes_weights = False"
        )

    def runs_on_gpu(self) -> None:
        from oodbench.plugin.pretend import Mixed, PretendGpu  # imports torch

        train, _ = self._problem()
        try:
            with PretendGpu():
                _fit(self.cls(), train, _trials(self.cls)[:2], ON_GPU)
        except Mixed as error:
            raise AssertionError(f"on a GPU it fails: it {error}") from None

    def travels(self) -> None:
        import cloudpickle

        train, validation = self._problem()
        method = cloudpickle.loads(cloudpickle.dumps(self.cls()))  # as it goes to a worker, from a notebook too
        predictor = _fit(method, train, _trials(self.cls)[:1])[0]
        copy = cloudpickle.loads(cloudpickle.dumps(predictor))
        same = np.array_equal(copy.predict(validation.x), predictor.predict(validation.x))
        assert same, "the predictor gives different values after pickling"

    def _problem(self, task: Task | None = None, classes: int = 2) -> tuple[dict[int, TrainingRows], Environment]:
        method = self.cls()
        needs = method.needs_with({name: dimension.default for name, dimension in method.search_space().items()})
        train, validation = _problem(task or self.cls.tasks[0], classes, labelled="environments" in needs)
        if "invariant" in needs:
            train = {seed: replace(rows, invariant=(0, 1)) for seed, rows in train.items()}
        return train, validation


def method_checks(cls: type[Method]) -> list[Check]:
    of_method = _MethodChecks(cls)
    checks: list[Check] = [
        ("satisfies the interface", of_method.interface),
        ("does not change its inputs", of_method.leaves_rows_alone),
    ]
    if "regression" in cls.tasks:
        checks.append(("trains a regression", lambda: of_method.trains("regression", 2, SETUP)))
    if "classification" in cls.tasks:
        checks.append(("trains on two classes", lambda: of_method.trains("classification", 2, SETUP)))
        checks.append(("trains on three classes", lambda: of_method.trains("classification", 3, SETUP)))
    if issubclass(cls, LossMethod):
        checks.append(("trains a linear model", lambda: of_method.trains(cls.tasks[0], 2, LINEAR)))
    if cls.on_gpu:
        checks.append(("would run on a GPU", of_method.runs_on_gpu))
    if issubclass(cls, LossMethod):
        in_batches = "gives the same result alone or in a pack, in batches"
        checks.append((in_batches, lambda: of_method.alone_or_packed(IN_BATCHES)))
    return [
        *checks,
        ("gives the same result for the same seed", of_method.repeats),
        ("gives the same result on a used instance", of_method.begins_anew),
        ("gives the same result alone or in a pack", lambda: of_method.alone_or_packed(SETUP)),
        ("can be sent between machines, with its predictors", of_method.travels),
        *([("counts rows by their weights", of_method.counts_weights)] if cls.takes_weights else []),
    ]


def watched(cls: type[Method]) -> type[Method]:
    """The method with its inputs compared before and after each call."""
    if not issubclass(cls, LossMethod):
        return cls

    door = "loss" if cls.direction is LossMethod.direction else "direction"

    class Watched(cls):  # type: ignore[misc, valid-type]
        def direction(self, rows: Rows, hp: Hparams) -> Tensor:
            rows = _not_shared(rows)
            with _unchanged(rows, door):
                direction: Tensor = super().direction(rows, hp)
            return direction

        def explore(self, rows: Rows, hp: Hparams) -> Tensor:
            with _unchanged(rows, "explore"):
                explored: Tensor = super().explore(rows, hp)
            return explored

    return Watched


def _not_shared(rows: Rows) -> Rows:
    """With memory for every trial: torch refuses to write into what trials share, in words that lead nowhere."""
    batch = rows._batch
    tensors = {field.name: getattr(batch, field.name) for field in fields(batch)}
    own = {name: per_trial(tensor, len(rows.y)).contiguous() for name, tensor in tensors.items() if tensor is not None}
    return replace(rows, y=rows.y.contiguous(), _batch=replace(batch, **own))


@contextlib.contextmanager
def _unchanged(rows: Rows, door: str) -> Iterator[None]:
    names = ("y", "x", "environments", "environment", "explored", "losses", "outputs", "parameters")
    inputs = {name: getattr(rows, name, None) for name in names}
    before = {name: tensor.detach().clone() for name, tensor in inputs.items() if tensor is not None}
    try:
        yield
    finally:  # also where autograd complains of it first, in words that lead nowhere
        for name, copy in before.items():
            tensor = inputs[name]
            assert tensor is not None
            assert tensor.equal(copy), f"{door} changes rows.{name} in place: work on a copy, rows.{name}.clone()"


def dataset_checks(cls: type[Dataset]) -> list[Check]:
    def make() -> Dataset:
        return configure(cls, cls.tiny, cls.__name__)

    def parts(seed: int = 0) -> dict[str, list[Environment]]:
        dataset = make()
        return {
            "train": list(dataset.train(seed)),
            "validation": list(dataset.validation(seed)),
            "test": list(dataset.test(seed)),
        }

    def interface() -> None:
        fault = fault_of("dataset", cls)
        assert fault is None, fault

    def has_fitting_environments() -> None:
        made = parts()
        for part, environments in made.items():
            like = made["train"][0].x.shape[1] if made["train"] and part != "train" else None
            fault = fault_in(part, environments, make(), like)
            assert fault is None, fault
        fault = fault_in_encoder(make().encoder(0), make())
        assert fault is None, fault

    def repeats() -> None:
        for part, environments in parts(0).items():
            assert fingerprint(environments) == fingerprint(parts(0)[part]), f"{part} differs for the same seed"
        first, second = fingerprint(parts(0)["train"]), fingerprint(parts(1)["train"])
        assert first != second, "train is the same for different seeds"

    def keeps_test_rows_apart() -> None:
        by_part = {
            part: {
                row.tobytes() for environment in environments for row in np.column_stack([environment.x, environment.y])
            }
            for part, environments in parts().items()
        }
        for part in ("train", "validation"):
            common = len(by_part["test"] & by_part[part])  # in discrete data some rows are equal by chance
            assert common <= len(by_part["test"]) // 5, f"{common} test rows are also {part} rows"

    return [
        ("satisfies the interface", interface),
        ("has consistent training, validation and test environments", has_fitting_environments),
        ("gives the same data for the same seed", repeats),
        ("keeps test rows out of training and validation", keeps_test_rows_apart),
    ]


def _problem(task: Task, classes: int, labelled: bool) -> tuple[dict[int, TrainingRows], Environment]:
    """Two seeds of an easy problem with three environments, and rows to validate on."""
    train = {}
    for seed in (0, 1):
        environments = [_rows(f"group {group}", seed * 10 + group, task, classes, 60) for group in range(3)]
        train[seed] = TrainingRows.pooled(environments, task, classes, labelled, ("a", "b", "c"))
    return train, _rows("validation", 99, task, classes, 80)


def _rows(name: str, seed: int, task: Task, classes: int, rows: int) -> Environment:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    signal = x[:, 0] - 0.5 * x[:, 1] + 0.1 * rng.normal(size=rows)
    if task == "regression":
        return Environment(name, x, signal)
    return Environment(name, x, np.digitize(signal, np.linspace(-1, 1, classes + 1)[1:-1]))


def _trials(cls: type[Method]) -> list[Trial]:
    """The defaults and two random configurations that can share a pack, on two seeds."""
    space = cls().search_space()
    shared = {name: dimension.default for name, dimension in space.items() if dimension.shared}
    return [
        Trial(
            index,
            draw_configuration(space, shared, (7,), index),
            seed,
            training_entropy("check", index, seed),
        )
        for seed in (0, 1)
        for index in range(3)
    ]


def _fit(
    method: Method, train: dict[int, TrainingRows], trials: Sequence[Trial], setup: Setup = SETUP
) -> list[Predictor]:
    return method.fit_pack(train, trials, Trainer(setup))


def _distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The largest gap, relative to the spread; for classes, the share that differ."""
    if a.dtype.kind in "iub":
        return float(np.mean(a != b))
    return float(np.max(np.abs(a - b)) / max(np.std(a), 1e-6))
