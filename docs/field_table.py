"""Who beats ERM and boosting on the field's boards, on how many problems and at what cost, as committed boards have it.

python docs/field_table.py
oodbench leaderboard --suite field --json | python docs/field_table.py --cost > leaderboards/field/cost.csv

Writes Markdown for leaderboards/field/README.md, or what the studies of a record cost. A method is better or worse on a
problem if its mean test error over the test environments differs from the reference's in the moderated paired t-test
over seeds, with all methods of the problem as one family (Holm).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oodbench.board.statistics import sides_of

FOLDER = Path(__file__).parents[1] / "leaderboards" / "field" / "fair"
BOARDS = {
    "selection_bias": "selection bias",
    "spurious_correlation": "spurious correlation",
    "unit_regression": "unit tests, regression",
    "unit_classes": "unit tests, classes",
    "synthetic_commutes": "commutes, synthetic",
    "commutes_one_state": "commutes, one state",
    "commutes_two_states": "commutes, two states",
}
REFERENCES = ("oracle", "constant")  # shown on boards, compared with nothing


@dataclass(frozen=True)
class Problem:
    board: str
    dataset_id: str
    errors: pd.DataFrame  # a line for each method, a column for each seed: the mean over test environments

    def against(self, reference: str) -> dict[str, int]:
        """-1 for methods that are better than the reference, 1 for worse ones, 0 where no difference is shown."""
        sides = sides_of(self.errors.to_numpy(), list(self.errors.index).index(reference))
        return {method: int(side) for method, side in zip(self.errors.index, sides, strict=True) if method != reference}


def problems(folder: Path = FOLDER) -> list[Problem]:
    found = []
    for board in BOARDS:
        if (folder / f"{board}_cells.csv").exists():
            cells = pd.read_csv(folder / f"{board}_cells.csv")
            cells["method"] = cells["method"].str.partition(" ")[0]
            for dataset_id, own in cells[~cells["method"].isin(REFERENCES)].groupby("dataset_id", sort=False):
                errors = own.pivot_table("error", "method", "seed", "mean")
                found.append(Problem(board, str(dataset_id), errors[errors.notna().all(axis=1)]))
    return found


def table(found: list[Problem], cost: pd.DataFrame) -> str:
    """On how many problems of each board a method is better and worse than ERM; on all of them, than boosting, too."""
    boards = [board for board in BOARDS if any(problem.board == board for problem in found)]
    erm = [(problem.board, problem.against("erm")) for problem in found]
    boosting = [problem.against("hist_gb") for problem in found]
    methods = {method for _, own in erm for method in own}
    net = {method: sum(own.get(method, 0) for _, own in erm) for method in methods}
    header = ["than ERM:", *(BOARDS[board] for board in boards), "all", "than hist_gb: all", "time / ERM"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for method in sorted(methods, key=lambda method: (net[method], method)):
        shown = [_counts([own[method] for place, own in erm if place == board and method in own]) for board in boards]
        shown.append(_counts([own[method] for _, own in erm if method in own]))
        shown.append(_counts([own[method] for own in boosting if method in own]))
        lines.append(f"| {' | '.join([method, *shown, f'{relative_time(cost, method):.1f}'])} |")
    return "\n".join(lines)


def _counts(sides: list[int]) -> str:
    """`2+ 1- / 4`: better on two of four, worse on one."""
    if not sides:
        return "–"
    better, worse = sides.count(-1), sides.count(1)
    said = " ".join(filter(None, [f"{better}+" * bool(better), f"{worse}-" * bool(worse)])) or "0"
    return f"{said} / {len(sides)}"


def relative_time(cost: pd.DataFrame, method: str) -> float:
    """Worker seconds of a training, in those of ERM: the median over problems."""
    each = (cost["seconds"] / cost["trainings"]).groupby([cost["dataset_id"], cost["method"]]).first().unstack()
    return float((each[method] / each["erm"]).median())


def best(found: list[Problem]) -> str:
    """The lowest mean error of each problem, beside those of ERM and boosting."""
    lines = ["| problem | lowest | erm | hist_gb |", "|---|---|---|---|"]
    for problem in found:
        means = problem.errors.mean(axis=1)
        known = [f"{means[name]:.3f}" if name in means else "–" for name in ("erm", "hist_gb")]
        lines.append(f"| {problem.dataset_id} | {means.idxmin()} {means.min():.3f} | {known[0]} | {known[1]} |")
    return "\n".join(lines)


def costs(suite: dict[str, Any]) -> pd.DataFrame:
    """What each study spent, from the JSON of the suite's boards."""
    rows = [
        {"dataset_id": board["dataset_id"], "method": row["method"].partition(" ")[0]}
        | {name: row["ledger"][name] for name in ("trainings", "gradient_steps", "seconds")}
        for board in [board for name in suite["boards"] for board in name["leaderboards"]]
        for row in board["rows"]
        if row["ledger"]["trainings"]
    ]
    return pd.DataFrame(rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--cost"]:
        costs(json.load(sys.stdin)).to_csv(sys.stdout, index=False)
    else:
        seen = problems()
        print(best(seen), table(seen, pd.read_csv(FOLDER.parent / "cost.csv")), sep="\n\n")
