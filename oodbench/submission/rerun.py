"""Some of the trainings of a submission, run again here: the same bits, or where that cannot be, the same statistics.

Trainings that are one tensor program run again together, since their bits depend on it; all of them are compared.
A search by halving is run again from its first rung on, since all of it decides which trainings go on.
By statistics, none may differ more than two trainings on different seeds do, and those of a configuration may not
differ in one direction.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from oodbench.board.moderated import Numbers
from oodbench.engine.scoring import SCORES
from oodbench.errors import one_line
from oodbench.study.coefficients import score_coefficients
from oodbench.study.record import COEFFICIENTS, CONSTANT, NO_CONFIGURATION, ConcludedStudy
from oodbench.study.sealed import Wanted, open_test

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.study.pack import PackResult
    from oodbench.study.study import Study

How = Literal["bit for bit", "by statistics"]
Training = tuple[str, int, int]
"""A study, a configuration and a seed."""
KEY = ["configuration", "seed", "part", "environment"]
LEVEL = 0.05  # of all comparisons of a study together
ROUNDING = 1e-6  # relative: of single precision
NEGLIGIBLE = 0.05  # of the spread over seeds


@dataclass(frozen=True)
class Rerun:
    """What the trainings of a study came to here."""

    study: str
    trainings: int
    values: int  # that were compared
    how: How
    fault: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ok": not self.fault}


def draw_trainings(studies: Sequence[ConcludedStudy], count: int) -> list[Training]:
    """By chance, which nobody knows beforehand; first of the chosen configurations, whose scores boards show."""
    chosen: list[Training] = []
    others: list[Training] = []
    for study in studies:
        assert study.results is not None
        rows = study.results[study.results["part"] == "validation"].drop_duplicates(["configuration", "seed"])
        for configuration, seed, is_chosen in rows[["configuration", "seed", "chosen"]].itertuples(index=False):
            (chosen if is_chosen else others).append((study.record.study_id, int(configuration), int(seed)))
    chance = random.SystemRandom()
    chance.shuffle(chosen)
    chance.shuffle(others)
    return (chosen + others)[:count]


def rerun(study: Study, concluded: ConcludedStudy, trainings: Sequence[Training], differing: Sequence[str]) -> Rerun:
    """`differing` is in what this machine differs from that of the submission: then bits need not agree."""
    wanted = {(configuration, seed) for _, configuration, seed in trainings}
    title = concluded.record.title
    try:
        with _as_a_worker():
            here, ran, others = _train(study, concluded, wanted)
    except (Exception, SystemExit) as error:  # of the plug-ins
        return Rerun(title, len(wanted), 0, "bit for bit", f"it cannot be run again here: {one_line(error)}")
    recorded = _recorded(concluded, here)
    how: How = "bit for bit"
    fault = ("" if differing else others) or _other_bits(here, recorded)
    if fault and differing:
        how = "by statistics"
        fault = _other_statistics(here, recorded, concluded)
    fault = fault or _more_rows(concluded, here, ran)
    lost = _scored(concluded.results) & ran - _scored(here)
    if lost:
        configuration, seed = min(lost)
        fault = f"configuration {configuration}, seed {seed} was handed in with scores, and its training fails here"
    return Rerun(title, len(ran), len(here), how, fault)


def _scored(rows: pd.DataFrame | None) -> set[tuple[int, int]]:
    """The trainings that have scores: a configuration and a seed."""
    assert rows is not None
    own = rows[rows["part"] == "validation"]
    return set(zip(own["configuration"].astype(int), own["seed"].astype(int), strict=True))


@contextlib.contextmanager
def _as_a_worker() -> Iterator[None]:
    """With one thread, as a pack has unless more CPUs are asked for."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _train(
    study: Study, concluded: ConcludedStudy, wanted: set[tuple[int, int]]
) -> tuple[pd.DataFrame, set[tuple[int, int]], str]:
    """Result rows of the packs that have these trainings, on test for those that were chosen; what was trained; and
    whether a search by halving goes on with others here: all of its lower rungs are run again."""
    import pandas as pd

    from oodbench.search.jobs import job_of
    from oodbench.search.worker import run_configuration, run_pack
    from oodbench.study.meter import Meter

    results: dict[int, PackResult] = {}
    rows: list[dict[str, Any]] = []
    predictors: dict[tuple[int, int], Any] = {}
    ran: set[tuple[int, int]] = set()
    for pack in study.packs:
        own = [(trial.configuration, trial.seed) for trial in pack.trials]
        of_last_rung = pack.rung + 1 >= len(study.rungs)
        if pack.without is not None or (of_last_rung and not wanted & set(own)):
            continue
        job = job_of(study, pack, lambda earlier: results[earlier.index].checkpoint)
        if study.budget.drawn_up_front:
            result = run_pack(job.method, pack, job.data, job.setup, job.start, job.stop)
        else:
            result = run_configuration(job.method, pack, job.data, job.setup)
        results[pack.index] = result
        if of_last_rung:
            rows += result.validation
            predictors |= {key: model for key, model in zip(own, result.predictors, strict=True) if model is not None}
            ran |= set(own)
    choice = concluded.record.choice
    assert choice is not None
    chosen = {seed: choice.of_seed(seed) for seed in study.seeds if (choice.of_seed(seed), seed) in predictors}
    meter = Meter.of_task(study.dataset.task, study.dataset.classes)
    wanted_on_test = Wanted({seed: [chosen[seed]] if seed in chosen else [] for seed in study.seeds})
    tested, _, _ = open_test(study, predictors, wanted_on_test, meter)
    models = {seed: predictors[number, seed] for seed, number in chosen.items()}
    tested += score_coefficients(study, models, choice)
    here = pd.DataFrame([*rows, *tested], columns=list(dict.fromkeys([*KEY, "rows", *SCORES, *meter.metrics])))
    return here, ran, _other_rungs(study, results)


def _other_rungs(study: Study, results: Mapping[int, PackResult]) -> str:
    for rung, handed_in in enumerate(study.climbed):
        best = replace(study, climbed=study.climbed[:rung]).climb(results).climbed[rung]
        if best != handed_in:
            return f"from rung {rung + 1}, the best configurations here are {best}, and {handed_in} were handed in"
    return ""


def _recorded(concluded: ConcludedStudy, here: pd.DataFrame) -> pd.DataFrame:
    """The rows that were handed in, in the order of those here; without values where there is none."""
    assert concluded.results is not None
    theirs = concluded.results.drop_duplicates(KEY).set_index(KEY)
    return theirs.reindex(here.set_index(KEY).index).reset_index()


def _more_rows(concluded: ConcludedStudy, here: pd.DataFrame, ran: set[tuple[int, int]]) -> str:
    """Of what was scored again, rows that were handed in twice, or that there are none of here."""
    results = concluded.results
    assert results is not None
    of_choice = results["chosen"] & results["part"].isin(["train", "test", COEFFICIENTS])
    scored = results[of_choice | results["part"].isin(["validation", CONSTANT])]
    expected = set(here[KEY].itertuples(index=False, name=None))
    for key, count in Counter(scored[KEY].itertuples(index=False, name=None)).items():
        configuration, seed, part, environment = key
        if ((configuration, seed) in ran or part == CONSTANT) and (count > 1 or key not in expected):
            return f"configuration {configuration}, seed {seed} has a row too many: {part} environment {environment!r}"
    return ""


def _compared(here: pd.DataFrame, recorded: pd.DataFrame) -> list[str]:
    names = ["rows", *SCORES, *sorted({str(name) for name in here} - {*KEY, *SCORES, "rows"})]
    return [name for name in names if name in here and name in recorded]


def _other_bits(here: pd.DataFrame, recorded: pd.DataFrame) -> str:
    for name in _compared(here, recorded):
        ours, theirs = here[name].astype(float), recorded[name].astype(float)
        asked = theirs.notna() if name not in ("rows", "error") else ours.notna()  # metrics may be of few rows only
        differs = asked & (ours != theirs)
        if differs.any():
            place = int(differs.to_numpy().argmax())
            return f"{_place(here, place)}: {name} is {ours[place]!r} here, and was handed in as {theirs[place]!r}"
    return ""


def _place(rows: pd.DataFrame, number: int) -> str:
    row = rows.loc[number]
    return f"configuration {row['configuration']}, seed {row['seed']}, {row['part']} environment {row['environment']!r}"


def _other_statistics(here: pd.DataFrame, recorded: pd.DataFrame, concluded: ConcludedStudy) -> str:
    """Of the mean errors of trainings in each part of the data, against their spread over seeds."""
    import pandas as pd

    assert concluded.results is not None
    gaps = here[KEY].assign(gap=here["error"] - recorded["error"], value=recorded["error"].abs())
    gaps = gaps[gaps["configuration"] != NO_CONFIGURATION]
    if gaps["gap"].isna().any():
        return "a training that was handed in has no score here, or the reverse"
    parts = ["part", "configuration"]
    by_training = gaps.groupby([*parts, "seed"], as_index=False)[["gap", "value"]].mean()
    both = pd.concat([here, concluded.results]).drop_duplicates(KEY)  # what is known here says more of the spread
    means = both.groupby([*parts, "seed"], as_index=False)["error"].mean()
    errors = {key: own["error"].to_numpy() for key, own in means.groupby(parts)}
    groups = dict(iter(by_training.groupby(parts)))
    level = LEVEL / (len(by_training) + len(groups))
    for key, own in groups.items():
        fault = _group_fault(own["gap"].to_numpy(), errors[key], ROUNDING * float(own["value"].max()), level)
        if fault:
            return f"configuration {own['configuration'].iloc[0]}, {own['part'].iloc[0]} errors: {fault}"
    return ""


def _group_fault(gaps: Numbers, errors: Numbers, rounding: float, level: float) -> str:
    """`gaps` are those of trainings that were run again, `errors` those of all seeds."""
    from scipy.stats import t, ttest_1samp

    if len(errors) < 2:
        return "one seed has no spread, so it cannot be told whether other bits are the same result"
    spread = float(errors.std(ddof=1))
    most = float(t.ppf(1 - level / 2, len(errors) - 1)) * spread * math.sqrt(2) + rounding
    if abs(gaps).max() > most:
        return f"one differs by {abs(gaps).max():.3g}, and trainings on other seeds by no more than {most:.3g}"
    mean = float(gaps.mean())
    if abs(mean) > NEGLIGIBLE * spread + rounding and len(gaps) > 1 and ttest_1samp(gaps, 0).pvalue < level:
        return f"they differ by {mean:.3g} in the mean, which chance does not explain"
    return ""
