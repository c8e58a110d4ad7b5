"""Studies: one method on one dataset setting with a budget."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from typing import Any

from oodbench.engine.recipe import Recipe
from oodbench.engine.scoring import SCORES
from oodbench.engine.trial import Setup, Trial, seeds_that_fit
from oodbench.errors import BrokenPlugin, MissingInformation, OodbenchError, one_line
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.method import LossMethod, Method
from oodbench.plugin.registry import find
from oodbench.plugin.selector import told_to
from oodbench.settings.fields import as_dict, changed
from oodbench.settings.space import (
    Fixed,
    OneEach,
    Space,
    Value,
    draw_configuration,
    enumerate_configurations,
    fixed_text,
    restrict_space,
)
from oodbench.study.data import SearchData, SharedData
from oodbench.study.halving import REDUCTION, Rung, best_configurations, plan_rungs
from oodbench.study.pack import Pack, PackResult, divide
from oodbench.study.selectors import find_selector
from oodbench.study.sources import source_digest
from oodbench.study.spec import Budget, Selecting
from oodbench.version import __version__

ORACLE = "oracle: chosen on test data"
WEIGHTED = "Training, selection and all scores count rows by their weights; stability counts them alike."
LEAST_ENVIRONMENTS = 3  # of training, to leave one out: a method that needs environments needs two


@dataclass(frozen=True, eq=False)
class Study:
    method_name: str
    method: Method
    dataset_name: str
    dataset: Dataset
    setup: Setup
    budget: Budget
    selector: str
    data: SharedData
    fixed: Mapping[str, Fixed] = field(default_factory=dict)  # by the user or a preset
    label: str = ""  # the row on a leaderboard
    tried: tuple[Mapping[str, Value], ...] | None = None  # configurations, where the search decided on them
    climbed: tuple[tuple[int, ...], ...] = ()  # of a search by halving, the configurations of each rung after the first
    extends: tuple[
        int, ...
    ] = ()  # how many configurations the searches had that this one goes on from, one after another
    choose: str = "study"  # what gets a configuration of its own: the study, or each seed
    open_all: bool = False  # whether all configurations are scored on test after the choice

    def check(self) -> None:
        """Whether the method can work here at all."""
        task = self.dataset.task
        if task not in self.method.tasks:
            raise MissingInformation(
                f"method {self.method_name!r} does not do {task}, which {self.dataset_name!r} is.\n"
                f"It does {', '.join(self.method.tasks)}."
            )
        if "environments" in self.needs and not self.data.labelled:
            raise MissingInformation(
                f"method {self.method_name!r} needs environment labels, and {self.dataset_name!r} has only one "
                f"training environment.\n{self._several} or a method that needs none."
            )
        self._check_left_out()
        self._check_weights()
        if "invariant" in self.needs and self.dataset.invariant is None:
            raise MissingInformation(
                f"method {self.method_name!r} needs the invariant columns, and {self.dataset_name!r} does not know "
                "them.\nChoose a simulated dataset, or another method."
            )
        try:
            for seed in self.seeds:
                self.method.check(self.search_data(seed).train, self.configurations[0])
            _ = self.packs
        except OodbenchError:
            raise
        except Exception as error:
            raise BrokenPlugin(
                f"method {self.method_name!r} cannot be set up on {self.dataset_name!r}: {one_line(error)}."
            ) from error

    def _check_weights(self) -> None:
        if not self.data.weighted:
            return
        if not self.method.takes_weights:
            raise MissingInformation(
                f"method {self.method_name!r} cannot count rows by weights, and {self.dataset_name!r} has weights.\n"
                "Leave out the method, or the weights (of a table: the setting weight)."
            )
        metric = find_selector(self.selector).metric
        if metric not in SCORES and not find("metric", metric).takes_weights:
            raise MissingInformation(
                f"--selector {self.selector} goes by a metric that cannot count rows by weights, and "
                f"{self.dataset_name!r} has weights.\nChoose another metric, or leave out the weights."
            )

    def _check_left_out(self) -> None:
        counts = {len(environments) for environments in self.data.train.values()}
        if self.left_out and (min(counts) < LEAST_ENVIRONMENTS or len(counts) > 1):
            has = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}, depending on the seed"
            raise MissingInformation(
                f"--selector {self.selector} trains without each training environment in turn, and "
                f"{self.dataset_name!r} has {has}.\n"
                f"It needs at least {LEAST_ENVIRONMENTS} on every seed: choose another dataset, or another selector."
            )

    @property
    def _several(self) -> str:
        """How to get several training environments: a setting that names the only one can name more."""
        only = self.data.train[self.seeds[0]][0].name
        naming = [name for name, value in as_dict(self.dataset).items() if value == (only,)]
        return f"Name several, --set {naming[0]}={only},OTHER," if naming else "Choose a dataset with several,"

    @property
    def notice(self) -> str:
        """What a reader of its results must know of the data."""
        return " ".join(filter(None, [self.dataset.notice, WEIGHTED if self.data.weighted else ""]))

    @cached_property
    def told(self) -> dict[str, Value]:
        """Hyper-parameters that the dataset's facts give, unless the user fixed them."""
        facts = self.dataset.facts
        space = self.method.search_space()
        return {
            name: space[name].parse(facts[name])
            for name in sorted(self.method.uses)
            if name in facts and name not in self.fixed
        }

    @property
    def information(self) -> list[str]:
        """What the method was given besides unlabelled training rows; knowledge may also come by hand."""
        by_hand = [f"{name}={fixed_text(self.fixed[name])} by hand" for name in self.method.uses if name in self.fixed]
        return sorted(self.needs) + [f"{name}={value}" for name, value in self.told.items()] + sorted(by_hand)

    @cached_property
    def needs(self) -> frozenset[str]:
        """The information that the method needs, with its hyper-parameters that are not searched."""
        return self.method.needs_with(self.configurations[0])

    @property
    def seeds(self) -> list[int]:
        return self.budget.data_seeds

    @cached_property
    def configurations(self) -> list[dict[str, Value]]:
        """Equal budgets, drawn up front: configuration 0 is the defaults. A space of few points is searched whole.

        Of a search that decides on the way, those that it tried, or before it those that a random one would try.
        """
        if self.tried is not None:
            return [dict(hparams) for hparams in self.tried]
        if self.whole_space is not None:
            return self.whole_space
        repeat = f" {self.budget.repeat}" if self.budget.repeat else ""  # no method's name has a blank
        entropy = (self.budget.seed, *(self.method_name + repeat).encode())
        return [
            draw_configuration(self.space, self.decided | self._listed_for(index), entropy, index)
            for index in range(self.begun)
        ]

    def _listed_for(self, index: int) -> dict[str, Value]:
        return {name: each.values[index] for name, each in self.listed.items()}

    @property
    def listed(self) -> dict[str, OneEach]:
        """Hyper-parameters with a value for each configuration."""
        return {name: value for name, value in self.fixed.items() if isinstance(value, OneEach)}

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        """Of a search by halving. Trained to the end is what makes no gradient steps, or some ahead of trainings, and
        configurations that are listed."""
        trials, steps = self.budget.trials, self.setup.recipe.steps
        if not self.budget.halves:
            return ()
        if not isinstance(self.method, LossMethod) or self.method.steps_ahead or self.listed:
            return (Rung(steps, trials),)
        every = enumerate_configurations(self.space, self.decided, REDUCTION * trials)
        return plan_rungs(trials, steps, math.inf if every is None else len(every), self.method.pauses)

    @property
    def begun(self) -> int:
        """With how many configurations the search begins."""
        return self.rungs[0].trials if self.rungs else self.budget.trials

    @property
    def is_extendable(self) -> bool:
        """Whether its configurations are those of a search with more trials, or their beginning."""
        return self.budget.drawn_up_front and not self.budget.halves

    @property
    def at_top(self) -> bool:
        """Whether the rungs that are decided are all there are."""
        return len(self.climbed) + 1 >= len(self.rungs)

    def climb(self, results: Mapping[int, PackResult]) -> Study:
        """With one more rung decided, by the results of all packs of the last one that is."""
        rung = len(self.climbed)
        rows = [row for pack in self.packs if pack.rung == rung for row in results[pack.index].validation]
        best = best_configurations(rows, self.selector, self.budget.seeds, self.rungs[rung + 1].trials)
        return replace(self, climbed=(*self.climbed, best))

    @cached_property
    def space(self) -> Space:
        """What is searched, with what is decided."""
        return restrict_space(self.method.search_space(), self.fixed)

    @cached_property
    def decided(self) -> dict[str, Value]:
        single = {name: value for name, value in self.fixed.items() if not isinstance(value, tuple | OneEach)}
        return self.told | single

    @cached_property
    def whole_space(self) -> list[dict[str, Value]] | None:
        """Every configuration, where there are no more than the budget, and they are not listed."""
        return None if self.listed else enumerate_configurations(self.space, self.decided, self.begun)

    @property
    def left_out(self) -> list[int]:
        """The training environments that each configuration is trained without, too."""
        return list(range(self.data.environments)) if find_selector(self.selector).leaves_out else []

    @property
    def trainings(self) -> int:
        return len(self.configurations) * self.budget.seeds * (1 + len(self.left_out))

    @property
    def portions(self) -> int:
        """What is trained at a time: of a search by halving, a training has one for each of its rungs."""
        return self.budget.seeds * sum(rung.trials for rung in self.rungs) if self.rungs else self.trainings

    @cached_property
    def packs(self) -> list[Pack]:
        if not self.budget.drawn_up_front:
            return [self.configuration_pack(index, hparams) for index, hparams in enumerate(self.configurations)]
        packs: list[Pack] = []
        for first, end in pairwise((0, *self.extends, len(self.configurations))):
            for without in (None, *self.left_out):
                packs += self._divide(range(first, end), without, len(packs))
        for rung, configurations in enumerate(self.climbed, start=1):
            packs += self._divide(configurations, None, len(packs), rung)
        return packs

    def _divide(self, configurations: Iterable[int], without: int | None, first: int, rung: int = 0) -> list[Pack]:
        shared = [name for name, dimension in self.method.search_space().items() if dimension.shared]
        trials = [
            Trial.of(self.method_name, index, self.configurations[index], seed, self.budget.repeat)
            for seed in self.seeds
            for index in configurations
        ]

        def alike(trial: Trial) -> tuple[Any, ...]:
            shape = self.search_data(trial.seed, without).train.x.shape
            return (shape, *(trial.hparams[name] for name in shared))

        def capacity(trial: Trial) -> int:
            train = self.search_data(trial.seed, without).train
            outputs = self.setup.recipe.outputs(train.task == "classification", train.classes)
            return self.method.pack_capacity(len(train), outputs, self.setup)

        def most_seeds(trial: Trial) -> int:
            return seeds_that_fit(self.setup, *self.search_data(trial.seed, without).train.x.shape)

        return divide(self.study_id, trials, alike, capacity, most_seeds, without, first, rung)

    def configuration_pack(self, index: int, hparams: Mapping[str, Value]) -> Pack:
        """One configuration on all seeds."""
        name, repeat = self.method_name, self.budget.repeat
        return Pack(self.study_id, index, tuple(Trial.of(name, index, hparams, seed, repeat) for seed in self.seeds))

    def search_data(self, seed: int, without: int | None = None) -> SearchData:
        return self.data.for_search(seed, "environments" in self.needs, "invariant" in self.needs, without)

    @property
    def dataset_id(self) -> str:
        """The dataset with the settings that differ from its defaults."""
        return name_dataset(self.dataset_name, self.dataset)

    @cached_property
    def study_id(self) -> str:
        """Equal for equal work: the same command finds what an earlier one left."""
        selector = find_selector(self.selector)
        parts = [self.search_id, self.selector]
        if not type(selector).__module__.startswith("oodbench."):  # the version stands for the built-in ones
            parts.append(source_digest(type(selector)))
        parts += [f"choose={self.choose}"] if self.choose != "study" else []
        parts += ["open_all"] if self.open_all else []
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]

    @property
    def repeat_of(self) -> str:
        """The identity of the study whose search this one repeats."""
        return replace(self, budget=replace(self.budget, repeat=0)).study_id

    @cached_property
    def extendable_id(self) -> str:
        """Equal for searches whose trainings are the same, but for how many there are."""
        versions = [version(package) for package in ("torch", "numpy", "scikit-learn")]
        shorter = replace(self, budget=replace(self.budget, trials=1))
        return hashlib.sha256(" ".join([shorter.search_id, *versions]).encode()).hexdigest()[:16]

    @cached_property
    def search_id(self) -> str:
        """Equal for equal trainings, however one of them is chosen."""
        described = [
            __version__,
            self.method_name,
            source_digest(type(self.method)),
            self.dataset_name,
            source_digest(type(self.dataset)),
            as_dict(self.dataset),
            self.dataset.file_hash,
            self.data.fingerprint,
            self.setup.model.name,
            source_digest(type(self.setup.model)),
            as_dict(self.setup.model),
            _told_apart_by(self.setup.recipe),
            self.setup.device,
            as_dict(self.budget),
            dict(self.fixed),
            self.told,
            {name: f"{dimension}, {dimension.default}" for name, dimension in self.method.search_space().items()},
            *(["without each environment in turn"] if self.left_out else []),
            *([f"the best by {self.selector} go on"] if self.budget.halves else []),
        ]
        return hashlib.sha256(json.dumps(described, default=str).encode()).hexdigest()[:16]


def _told_apart_by(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe makes a search another one."""
    settings = as_dict(recipe)
    if not recipe.explore:  # recorded studies are older than this setting, and keep their identities
        del settings["explore"]
    return settings


def name_dataset(dataset_name: str, dataset: Dataset) -> str:
    name = f"{dataset_name}@{dataset.variant}" if dataset.variant else dataset_name
    return " ".join([name, *_assignments(changed(dataset))])


def deviations(
    setup: Setup, usual: Setup, fixed: Mapping[str, Fixed], budget: Budget, selecting: Selecting
) -> list[str]:
    """In what a study differs from the usual way, in few words."""
    parts = [f"{name}={fixed_text(value)}" for name, value in fixed.items()]
    if setup.model != usual.model:
        parts.append(" ".join([setup.model.name, *_assignments(changed(setup.model))]))
    for name, value in as_dict(setup.recipe).items():
        if value != getattr(usual.recipe, name):
            parts.append(f"{name}={value}")
    return parts + budget.deviations + unusual_choice(selecting.selector, selecting.choose)


def unusual_choice(selector: str, choose: str) -> list[str]:
    """What every label says of a choice that is not ranked with others."""
    told = told_to(find_selector(selector))
    parts = [ORACLE] if selector == "oracle" else [f"{selector}: {told}"] if told else []
    return parts + ([f"choose={choose}"] if choose != "study" else [])


def _assignments(values: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]
