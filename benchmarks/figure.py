"""The figure and the tables of docs/performance.md: what a step costs, measured on this machine.

python benchmarks/figure.py

Writes docs/images/performance.svg and prints the tables.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator
from steps import FEATURES, eager, pack_size, packed, products

from oodbench.engine.trainer import keep_freed_memory
from oodbench.report.drawing import COLORS, PAGE, STYLE

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "performance.svg"
ROWS, COLUMNS, WIDTHS = (20_000, 200_000, 2_000_000), (20, 100, 500), (8, 32, 128, 256)
TRIALS, WORKERS = (1, 4, 16, 64), (1, 2)
WORK = "import sys, torch; sys.path.insert(0, sys.argv[1]); torch.set_num_threads(1); import steps; "
WORK += "steps.packed('20,10', 20_000); print(steps.time.time(), flush=True); input(); "
WORK += "[steps.packed('20,10', 20_000) for _ in range(20)]"

Curves = dict[str, list[float]]


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    panels = [
        ("rows", ROWS, curves(ROWS, lambda widths, rows: (widths, rows, FEATURES))),
        ("columns, 20,000 rows", COLUMNS, curves(COLUMNS, lambda widths, columns: (widths, 20_000, columns))),
        ("hidden units in two layers", WIDTHS, curves(WIDTHS, of_width, {"MLP": "mlp"})),
        ("trials in a pack, 20,000 rows", TRIALS, of_trials()),
    ]
    for title, places, found in panels:
        print(table(title, places, found))
    together = of_workers()
    print(table("workers", WORKERS, together))
    draw(panels, together)


def of_width(_: str, width: int) -> tuple[str, int, int]:
    return f"{width},{width}", 20_000, FEATURES


def curves(
    places: Sequence[int],
    case: Callable[[str, int], tuple[str, int, int]],
    models: dict[str, str] | None = None,
) -> Curves:
    """In packs, eagerly, and the products alone; at every place."""
    found: Curves = {}
    for name, widths in (models or {"linear": "linear", "MLP 20-10": "20,10"}).items():
        cases = [case(widths, place) for place in places]
        found[f"{name}, pack"] = [packed(*each) for each in cases]
        found[f"{name}, eager"] = [eager(*each, rounds=2) for each in cases]
        found[f"{name}, products alone"] = [products(*each) for each in cases]
    return found


def of_trials() -> Curves:
    found: Curves = {}
    for name, widths in {"linear": "linear", "MLP 20-10": "20,10"}.items():
        found[f"{name}, pack"] = [packed(widths, 20_000, trials=trials) for trials in TRIALS]
        found[f"{name}, eager"] = [eager(widths, 20_000, rounds=2)] * len(TRIALS)
        found[f"{name}, products alone"] = [products(widths, 20_000, trials=trials) for trials in TRIALS]
    return found


def of_workers() -> Curves:
    """Wall-clock milliseconds of a step and training, by so many processes at once; the limit divides that of one."""
    command = [sys.executable, "-c", WORK, str(Path(__file__).parent)]
    taken = []
    for count in WORKERS:
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
        ]
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()  # it is warm
        started = time.perf_counter()
        for worker in workers:
            worker.communicate("\n")
        steps = 20 * (3 * 60 + 1) * count * pack_size("20,10", 20_000)
        taken.append(1000 * (time.perf_counter() - started) / steps)
    return {"MLP 20-10, pack": taken, "MLP 20-10, one worker's, divided": [taken[0] / count for count in WORKERS]}


def table(title: str, places: Sequence[int], found: Curves) -> str:
    lines = [f"| {title} | {' | '.join(found)} |", "|---:" * (len(found) + 1) + "|"]
    for number, place in enumerate(places):
        lines.append(f"| {place:,} | {' | '.join(f'{values[number]:.3f}' for values in found.values())} |")
    return "\n".join([*lines, ""])


def draw(panels: Sequence[tuple[str, Sequence[int], Curves]], together: Curves) -> None:
    with rc_context(STYLE):
        figure = Figure(figsize=(PAGE, 6.6), layout="constrained")
        axes = figure.subplots(3, 2)
        for axis, (title, places, found) in zip(axes.flat, [*panels, ("workers", WORKERS, together)], strict=False):
            plot(axis, title, places, found)
        for axis in axes[:, 0]:
            axis.set_ylabel("ms")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[2, 1].axis("off")
        axes[2, 1].legend(handles, labels, loc="center", title="dotted: the limit")
        figure.savefig(PICTURE, metadata={"Date": None})


def plot(axis: Any, title: str, places: Sequence[int], found: Curves) -> None:
    models = list(dict.fromkeys(name.partition(",")[0] for name in found))
    for name, values in found.items():
        model, _, way = name.partition(", ")
        color = COLORS[1 if model.startswith("MLP") and len(models) == 1 else models.index(model)]
        style = {"pack": "-", "eager": "--"}.get(way, ":")
        axis.plot(places, values, style, color=color, marker="o" if way == "pack" else None, markersize=4, label=name)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(list(places), [short(place) for place in places])
    axis.minorticks_off()
    axis.set_xlabel(title)
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def short(number: int) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number // size} {letter}"
    return str(number)


if __name__ == "__main__":
    main()
