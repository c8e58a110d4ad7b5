"""Figures of results: from made-up records whose numbers are known, and from a real run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oodbench.engine.data import Task
from oodbench.errors import UserError
from oodbench.report.drawing import COLORS, PAGE, looks_of
from oodbench.report.figures import draw_accuracy_f1, draw_distribution, draw_states, gather, write_figures
from oodbench.report.states import TILES
from oodbench.study.record import ConcludedStudy
from studies import failed, made_up

Cli = Callable[..., Any]


def record(label: str, errors: dict[str, float], task: Task = "classification", seeds: int = 2) -> ConcludedStudy:
    """A study with these errors, the second seed's a little larger, beside rows that no figure may show."""
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        rows += [_row(seed, "test", name, error + 0.02 * seed) for name, error in errors.items()]
        rows += [_row(seed, "train", "MA", 0.9), _row(seed, "validation", "MA", 0.9)]
        rows += [_row(seed, "test", name, 0.99) | {"chosen": False, "configuration": 1} for name in errors]
    return made_up(label, pd.DataFrame(rows), task, seeds=seeds)


def _row(seed: int, part: str, environment: str, error: float) -> dict[str, Any]:
    scores = {"error": error, "accuracy": 1 - error, "f1": 0.8 - error, "chosen": True}
    return {"configuration": 0, "seed": seed, "part": part, "environment": environment, "rows": 9, **scores}


def spread(names: Sequence[str], centre: float) -> dict[str, float]:
    return dict(zip(names, (centre + np.linspace(-0.05, 0.05, len(names))).tolist(), strict=True))


STATES = [state for state in TILES if state not in ("MA", "CA", "PR")]
FAILED = failed(record("irm", {"NY": 0.3}), "diverged")


def texts(file: Path) -> list[str]:
    """What is written in an SVG, where letters are drawn: the writer leaves the text in comments."""
    return re.findall(r"<!-- (.*?) -->", file.read_text(), re.DOTALL)


def test_scores_are_means_over_seeds_of_the_chosen_configuration() -> None:
    scores = gather("data", [record("srm", {"a": 0.2, "b": 0.4}), record("erm", {"a": 0.3, "b": 0.3}), FAILED])
    assert scores.methods == ["erm", "srm"]
    assert scores.of("srm").set_index("environment")["error"].to_dict() == pytest.approx({"a": 0.21, "b": 0.41})
    assert scores.of("erm")["f1"].tolist() == pytest.approx([0.49, 0.49])
    assert (scores.trained, scores.seeds, scores.without) == (("MA",), "2", ("irm",))


@pytest.mark.parametrize("format", ["svg", "png", "pdf"])
def test_the_same_record_gives_the_same_bytes(tmp_path: Path, format: str) -> None:
    records = [record("erm", spread(STATES, 0.3)), record("srm", spread(STATES, 0.2)), FAILED]
    once = write_figures("census", records, tmp_path / "once", format)
    again = write_figures("census", records[::-1], tmp_path / "again", format)
    assert [path.name for path in once] == [f"{name}.{format}" for name in ("accuracy_f1", "distribution", "states")]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    other = write_figures("census", [record("erm", spread(STATES, 0.31))], tmp_path / "other", format)
    assert once[0].read_bytes() != other[0].read_bytes()


def test_every_figure_says_what_data_it_is_and_what_is_missing(tmp_path: Path) -> None:
    dataset_id = "table path=a/long/path/to/some/people.csv target=income environment=state train=MA"
    for path in write_figures(dataset_id, [record("erm", spread(STATES, 0.3)), FAILED], tmp_path):
        written = " ".join(" ".join(texts(path)).split())
        assert dataset_id in written
        assert "49 test environments, means over 2 seeds" in written
        assert "without a result: irm" in written
        assert "erm" in written


def test_regressions_have_no_classes_and_other_names_no_map(tmp_path: Path) -> None:
    written = write_figures("data", [record("erm", {"r=-1.9": 1.0, "r=-2.9": 2.0}, "regression")], tmp_path)
    assert [path.name for path in written] == ["distribution.svg"]
    assert "test error (MSE)" in texts(written[0])
    assert any("worst r=" in text and "2.010" in text for text in texts(written[0]))


def test_averages_and_points_are_where_they_belong() -> None:
    scores = gather("data", [record("erm", {"a": 0.2, "b": 0.4}), record("srm", {"a": 0.1, "b": 0.1})])
    (axes,) = draw_accuracy_f1(scores).axes
    points, averages = axes.collections[:2], axes.collections[2:]
    assert np.allclose(points[0].get_offsets(), [[0.59, 0.79], [0.39, 0.59]])
    assert np.allclose([np.asarray(one.get_offsets())[0] for one in averages], [[0.49, 0.69], [0.69, 0.89]])
    (axes,) = draw_distribution(scores).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["erm\nworst b 0.590", "srm\nworst a 0.890"]  # the best on top


def test_the_map_shows_every_state_once_with_one_colour_scale() -> None:
    assert len(TILES) == len(set(TILES.values())) == 52
    scores = gather("data", [record("erm", spread(STATES, 0.3)), record("srm", spread(STATES, 0.2))])
    figure = draw_states(scores)
    best, worst, bar = figure.axes
    for axes in (best, worst):
        shown = [text.get_text() for text in axes.texts]
        assert [shown.count(state) for state in TILES if state != "PR"] == [1] * 51
        assert len(shown) == 51 + len(STATES)  # a number for those that have one
        by_line = [patch.get_linestyle() for patch in axes.patches]
        assert by_line.count("--") == 1  # where it was trained
    assert bar.get_ylim() == pytest.approx((0.16, 0.36))
    assert best.patches[0].get_facecolor() != worst.patches[0].get_facecolor()


def test_figures_have_the_width_of_a_page() -> None:
    for count in (1, 3):
        scores = gather("data", [record(f"m{number}", spread(STATES, 0.3)) for number in range(count)])
        for draw in (draw_states, draw_distribution, draw_accuracy_f1):
            assert draw(scores).get_figwidth() == PAGE


def test_other_peoples_methods_change_no_colour(distribution: Callable[..., Path]) -> None:
    before = looks_of(["srm", "erm"])
    distribution("aaa", "aaa_module", "", methods="aaa = aaa_module:Aaa")
    assert looks_of(["srm", "erm"]) == before
    assert looks_of(["aaa", "srm", "erm"])["srm"] == before["srm"]


def test_methods_keep_their_colours() -> None:
    few, many = looks_of(["erm", "srm"]), looks_of(["eiil", "erm", "fdro", "srm", "srm (mlp)"])
    assert few["srm"] == many["srm"]
    assert few["erm"] == many["erm"]
    assert len({look.color for look in many.values()}) == 5
    everything = looks_of([f"method {number}" for number in range(3 * len(COLORS))])
    assert len({(look.color, look.marker) for look in everything.values()}) == 3 * len(COLORS)


@pytest.mark.parametrize(
    ("records", "format", "expected"),
    [
        ([FAILED], "svg", "no study on 'data' has a result to draw"),
        ([record("erm", {"a": 0.1, "b": 0.2})], "gif", "there is no format of figures 'gif'"),
    ],
)
def test_what_cannot_be_drawn(tmp_path: Path, records: list[ConcludedStudy], format: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        write_figures("data", records, tmp_path / "new", format)
    assert not (tmp_path / "new").exists()


def test_one_test_environment_is_drawn_too(tmp_path: Path) -> None:
    written = write_figures("data", [record("erm", {"only": 0.1}), record("srm", {"only": 0.2})], tmp_path)
    assert [path.name for path in written] == ["accuracy_f1.svg", "distribution.svg"]
    assert all("1 test environment," in path.read_text() for path in written)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="figures cannot be written into"):
        write_figures("data", [record("erm", {"a": 0.1, "b": 0.2})], tmp_path / "file")


def test_from_the_command_line(cli: Cli, ray_address: str, tmp_path: Path) -> None:
    settings = ["--set", "majority=200", "--set", "minority=40", "--set", "test_rows=50"]
    run = ["run", "-m", "erm", "-d", "selection_bias", *settings, "--trials", "2", "--seeds", "2", "--figures", "here"]
    done = cli(*run, "--address", ray_address)
    assert done.code == 0, done.err
    assert "wrote 1 figures into here" in done.err
    drawn = cli("figures", "selection_bias", *settings, "-o", "there", "--json")
    assert drawn.json() == ["there/distribution.svg"]
    here, there = (tmp_path / folder / "distribution.svg" for folder in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()
    assert any("6 test environments, means over 2 seeds" in text for text in texts(here))
    for mistake, expected in (
        (["figures", "selection_bias", "-o", "x"], "there are no studies on 'selection_bias'"),
        (["figures", "selection_bias", *settings, "-o", "x", "--format", "gif"], "there is no format of figures 'gif'"),
        (["run", "--suite", "paper", "--figures", "x"], "--figures does not go with --suite"),
    ):
        done = cli(*mistake)
        assert (done.code, expected in done.err, len(done.err.strip().splitlines())) == (2, True, 2)
    assert not (tmp_path / "x").exists()
