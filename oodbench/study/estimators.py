"""Estimators of scikit-learn's kind as methods, by their import path: sklearn:sklearn.ensemble.ExtraTreesClassifier."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from oodbench.engine.data import Task, TrainingRows
from oodbench.engine.predictor import Predictor
from oodbench.errors import UnknownName, UserError, one_line
from oodbench.kit.estimators import EstimatorModel, class_numbers, one_thread
from oodbench.plugin.method import Method
from oodbench.settings.space import Dimension, Value, parse_dimension

PREFIX = "sklearn:"
EXAMPLE = f"{PREFIX}sklearn.ensemble.ExtraTreesClassifier"
WEIGHTS = "sample_weight"  # the parameter of fit
OWN = {"n_jobs": 1, "verbose": 0}  # the workers of a search share the cores already


class EstimatorMethod(Method):
    """An estimator with `fit` and `predict`; what is not searched has the estimator's own default."""

    path: ClassVar[str]
    asked_space: ClassVar[Mapping[str, Any]] = {}  # as the user wrote it

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        cls = find_estimator(self.path)
        names = _parameters(cls)
        fixed = {name: value for name, value in {**OWN, "random_state": seed}.items() if name in names}
        estimator = cls(**{**fixed, **hparams})
        weights = {} if train.weights is None else {WEIGHTS: train.weights}
        with one_thread():
            estimator.fit(train.x, class_numbers(train), **weights)
        return EstimatorModel.wrap(estimator, "sklearn", train)


def estimator_method(name: str, spaces: Mapping[str, Any]) -> type[EstimatorMethod]:
    """The method for sklearn:PATH. It searches those of the spaces whose name is one of its parameters."""
    path = name.removeprefix(PREFIX)
    cls = find_estimator(path)
    parameters = _parameters(cls)
    missing = [key for key, default in parameters.items() if default is inspect.Parameter.empty]
    if missing:
        raise UserError(
            f"estimator {path!r} cannot be made without {', '.join(missing)}.\n"
            "Write a method that makes it: `oodbench new method NAME` shows how."
        )
    own = {key: asked for key, asked in spaces.items() if key in parameters}
    space: dict[str, Dimension] = {key: parse_dimension(key, asked, parameters[key]) for key, asked in own.items()}
    members = {"path": path, "space": space, "asked_space": own, "tasks": _tasks(cls), "__doc__": inspect.getdoc(cls)}
    weighted = {"takes_weights": WEIGHTS in inspect.signature(cls.fit).parameters}
    return type(cls.__name__, (EstimatorMethod,), {**members, **weighted, "__qualname__": name, "__module__": __name__})


def check_spaces(spaces: Mapping[str, Any], methods: list[type[Method]]) -> None:
    """Each space must be for a parameter of some estimator of the run."""
    estimators = [cls for cls in methods if issubclass(cls, EstimatorMethod)]
    for name in spaces:
        if not estimators:
            raise UserError(f"--space {name} is for estimators, and this run has none.\nName one with -m {EXAMPLE}.")
        if not any(name in cls.space for cls in estimators):
            known = {key for cls in estimators for key in _parameters(find_estimator(cls.path))}
            raise UnknownName(f"parameter of {', '.join(cls.path for cls in estimators)}", name, known)


def find_estimator(path: str) -> type[Any]:
    module, _, name = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, SystemExit) as error:
        raise UserError(
            f"there is no estimator {path!r}: {one_line(error)}.\n"
            f"Name an installed class by its import path, for example {EXAMPLE}."
        ) from None
    if not inspect.isclass(cls) or not all(callable(getattr(cls, need, None)) for need in ("fit", "predict")):
        raise UserError(
            f"{path!r} is not a class with fit and predict.\nName a classifier or a regressor, for example {EXAMPLE}."
        )
    return cls


def _parameters(cls: type[Any]) -> dict[str, Any]:
    """The names of its constructor's parameters, and their defaults."""
    own = inspect.signature(cls).parameters.values()
    return {one.name: one.default for one in own if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


def _tasks(cls: type[Any]) -> tuple[Task, ...]:
    from sklearn.base import is_classifier, is_regressor

    estimator = cls()
    if is_classifier(estimator):
        return ("classification",)
    return ("regression",) if is_regressor(estimator) else ("regression", "classification")
