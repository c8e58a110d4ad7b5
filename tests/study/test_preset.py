"""Presets, and searches that are restricted to some values: what wins, how it is labelled, what is tried."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from oodbench.engine.models import Linear, Mlp
from oodbench.errors import InvalidSetting, UnknownName
from oodbench.plugin import registry
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import StudyOptions
from oodbench.study.study import Study

SOURCE = """
from oodbench import Choice, LogUniform, LossMethod, Mlp, Option, Preset
class Tuned(LossMethod):
    "A method with a preset."
    space = {"penalty": LogUniform(0.1, 100.0, default=10.0), "passes": Choice(1, 2, 3), "form": Option("a", "b")}
    presets = {
        "released": Preset(
            about="as in the authors' code",
            fix={"penalty": 5, "form": "b", "learning_rate": (0.01, 0.001)},
            model=Mlp(width=(20, 10)),
            recipe={"steps": 300},
        )
    }
    def loss(self, rows, hp):
        return rows.losses.mean(-1)
"""
TINY = {"majority": 40, "minority": 10, "test_rows": 10}


@pytest.fixture(autouse=True)
def _installed(distribution: Callable[..., Any]) -> None:
    distribution("tuned", "tuned_plugin", SOURCE, methods="tuned = tuned_plugin:Tuned")
    sys.modules.pop("tuned_plugin", None)


def study(method: str, **more: Any) -> Study:
    options = StudyOptions(settings=TINY, **{"seeds": 1, **more})
    (planned,) = plan(resolve(Request([method], ["selection_bias"], options)), "cpu")
    return planned


def test_a_preset_gives_hyper_parameters_model_and_training() -> None:
    preset = study("tuned:released")
    assert preset.label == "tuned:released"
    assert preset.method_name == "tuned"
    assert preset.setup.model == Mlp(width=(20, 10))
    assert (preset.setup.recipe.steps, preset.setup.recipe.optimizer) == (300, "adam")
    assert all((one["penalty"], one["form"]) == (5.0, "b") for one in preset.configurations)
    assert {one["learning_rate"] for one in preset.configurations} == {0.01, 0.001}
    assert study("tuned").setup.model == Linear(intercept=False)


def test_what_the_user_sets_wins_and_is_in_the_label() -> None:
    mine = study(
        "tuned:released", fix={"penalty": "1"}, model_settings={"width": "8"}, recipe={"steps": "50"}
    )  # fmt: skip
    assert mine.label == "tuned:released (penalty=1, mlp width=8, steps=50)"
    assert (mine.setup.model, mine.setup.recipe.steps) == (Mlp(width=(8,)), 50)
    assert all((one["penalty"], one["form"]) == (1.0, "b") for one in mine.configurations)
    assert study("tuned:released", model="linear").setup.model == Linear()
    assert study("tuned:released", fix={"tuned.penalty": 2}).label == "tuned:released (penalty=2)"
    assert mine.study_id != study("tuned:released").study_id


def test_a_preset_and_the_same_by_hand_are_the_same_work() -> None:
    by_hand = study(
        "tuned", fix={"penalty": 5, "form": "b", "learning_rate": [0.01, 0.001]}, model="mlp",
        model_settings={"width": "20,10"}, recipe={"steps": 300},
    )  # fmt: skip
    assert by_hand.study_id == study("tuned:released").study_id
    assert by_hand.label == "tuned (penalty=5, form=b, learning_rate=0.01,0.001, mlp width=20,10, steps=300)"


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(UnknownName, match="no preset of method 'tuned' 'relesed'. Did you mean 'released'"):
        study("tuned:relesed")
    with pytest.raises(UnknownName, match="no preset of method 'erm' 'released'.\nKnown: none"):
        study("erm:released")


@pytest.mark.parametrize(
    ("preset", "reason"),
    [
        ("Preset('x', fix={'penalti': 1})", "has no hyper-parameter 'penalti'"),
        ("Preset('x', fix={'penalty': 1000})", "penalty=1000 is outside its range"),
        ("Preset('x', fix={'penalty': ()})", "penalty has no value"),
        ("Preset('x', recipe={'step': 3})", "recipe has no setting 'step'"),
        ("Preset('x', recipe={'steps': 'many'})", "steps=many is not a whole number"),
        ("Preset('x', model='mlp')", "model is not a model"),
        ("{'fix': {}}", "is not a name with an oodbench.Preset"),
    ],
)
def test_a_preset_that_does_not_fit_breaks_its_method(
    distribution: Callable[..., Any], preset: str, reason: str
) -> None:
    source = SOURCE.partition("    presets")[0] + f"    presets = {{'odd': {preset}}}\n    loss = LossMethod.explore\n"
    distribution("odd", "odd_plugin", source, methods="odd = odd_plugin:Tuned")
    sys.modules.pop("odd_plugin", None)
    assert reason in str(registry.load("method", "odd").broken)


def test_show_describes_presets() -> None:
    from oodbench.report.describe import describe_plugin

    (preset,) = describe_plugin("tuned")["presets"]
    assert preset == {
        "name": "tuned:released", "about": "as in the authors' code", "model": "mlp width=20,10",
        "fix": "penalty=5 form=b learning_rate=0.01,0.001", "recipe": "steps=300",
    }  # fmt: skip


FINITE = {"learning_rate": 0.01, "weight_decay": "0", "penalty": "0.1,1,10"}


def test_a_finite_space_is_searched_whole_defaults_first() -> None:
    whole = study("tuned", fix=FINITE)
    assert [(one["penalty"], one["passes"]) for one in whole.configurations] == [
        (10, 1), (10, 2), (10, 3), (0.1, 1), (0.1, 2), (0.1, 3), (1, 1), (1, 2), (1, 3),
    ]  # fmt: skip
    assert "penalty=0.1,1,10" in whole.label
    assert len(study("tuned", fix=FINITE, trials=9).configurations) == 9


def test_a_space_larger_than_the_budget_is_drawn_from() -> None:
    drawn = study("tuned", fix=FINITE, trials=8).configurations
    assert len(drawn) == 8
    assert drawn[0]["penalty"] == 10
    assert {one["penalty"] for one in drawn} <= {0.1, 1.0, 10.0}


def test_a_restricted_dimension_changes_no_other() -> None:
    free = study("tuned", trials=6).configurations
    restricted = study("tuned", trials=6, fix={"penalty": [1, 100]}).configurations
    assert [one["learning_rate"] for one in free] == [one["learning_rate"] for one in restricted]
    assert {one["penalty"] for one in restricted} == {1.0, 100.0}
    assert restricted[0]["penalty"] == 1.0  # the default, 10, is not among them: the first is


def test_an_option_can_be_searched_if_the_user_names_its_values() -> None:
    both = study("tuned", fix=FINITE | {"penalty": 1, "passes": 1, "form": "b,a"})
    assert [one["form"] for one in both.configurations] == ["a", "b"]
    assert len(both.packs) == 2  # options are plain values: trials of a pack agree on them


@pytest.mark.parametrize("value", ["0.1,1000", "0.1,", [0.1, "x"], []])
def test_every_value_of_a_restriction_must_fit(value: Any) -> None:
    with pytest.raises(InvalidSetting, match="penalty"):
        study("tuned", fix={"penalty": value})
