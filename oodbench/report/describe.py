"""What a method searches, the settings of a dataset, and what a suite runs, for `oodbench show`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oodbench.errors import UnknownName, UserError
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.described import find_dataset, is_description
from oodbench.plugin.registry import KINDS, find, names
from oodbench.plugin.selector import told_to
from oodbench.settings.fields import changed, configure, describe_settings
from oodbench.settings.space import fixed_text
from oodbench.study.study import name_dataset
from oodbench.suite.suite import Suite
from oodbench.suite.suitefile import read_suite, suite_names

if TYPE_CHECKING:
    from rich.console import Console


def describe_plugin(name: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """With settings, a dataset is made with them and describes its data."""
    if name in names("dataset") or is_description(name):
        return _dataset(name, settings or {})
    if settings:
        raise UserError(f"--set is for datasets, and {name!r} is none.\nLeave it out.")
    if name in names("method"):
        return _method(name)
    if name in names("model"):
        return _model(name)
    if name in names("metric"):
        return _metric(name)
    if name in names("selector"):
        return _selector(name)
    if name in suite_names() or name.endswith(".toml"):
        return _suite(read_suite(name))
    there_are = [*(plugin for kind in KINDS for plugin in names(kind)), *suite_names()]
    raise UnknownName("method, dataset, model, metric, selector or suite", name, there_are)


def print_description(description: dict[str, Any], console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(
        f"[bold]{escape(description['name'])}[/bold] ({description['kind']})\n\n{escape(description['about'])}\n"
    )
    for key, value in description.items():
        if key in ("name", "kind", "about"):
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict):
            table = Table(title=key.replace("_", " "), title_justify="left")
            for column in value[0]:
                table.add_column(column)
            for row in value:
                table.add_row(*(escape(str(cell)) for cell in row.values()))
            console.print(table)
        elif key == "warnings":
            for warning in value:
                console.print(f"[bold yellow]warning[/bold yellow]  {escape(warning)}", highlight=False, soft_wrap=True)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            console.print(f"{key.replace('_', ' ')}: {text or 'nothing'}", highlight=False)


def _method(name: str) -> dict[str, Any]:
    cls = find("method", name)
    return {
        "name": name,
        "kind": "method",
        "about": inspect.getdoc(cls) or "",
        "tasks": list(cls.tasks),
        "needs": sorted(cls.needs),
        "uses_if_the_dataset_tells": sorted(cls.uses),
        "search_space": [
            {"name": key, "default": value.default, "values": str(value), "searched": value.searched}
            for key, value in cls().search_space().items()
        ],
        "presets": [
            {
                "name": f"{name}:{key}",
                "about": preset.about,
                "fix": " ".join(f"{name}={fixed_text(value)}" for name, value in preset.fix.items()),
                "model": _with_settings(preset.model.name, preset.model) if preset.model else "",
                "recipe": " ".join(f"{name}={value}" for name, value in preset.recipe.items()),
            }
            for key, preset in cls.presets.items()
        ],
    }


def _metric(name: str) -> dict[str, Any]:
    metric = find("metric", name)
    return {
        "name": name,
        "kind": "metric",
        "about": inspect.cleandoc(metric.__doc__ or ""),
        "tasks": list(metric.tasks),
        "better": metric.better,
        "needs": metric.needs,
    }


def _selector(name: str) -> dict[str, Any]:
    cls = find("selector", name)
    return {
        "name": name,
        "kind": "selector",
        "about": inspect.getdoc(cls) or "",
        "takes_a_metric": cls.takes_metric,
        "sees_test_data": cls.sees_test,
        "goes_by_besides_validation_scores": told_to(cls()),
    }


def _model(name: str) -> dict[str, Any]:
    cls = find("model", name)
    return {
        "name": name,
        "kind": "model",
        "about": inspect.getdoc(cls) or "",
        "settings": _settings(cls),
    }


def _dataset(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    shown, cls = find_dataset(name)
    dataset = configure(cls, settings, f"dataset {shown!r}")
    set_up = bool(settings) or bool(cls.description)
    return {
        "name": name_dataset(shown, dataset) if set_up else shown,
        "kind": "dataset",
        "about": inspect.getdoc(cls) or "",
        "task": "depends on its settings" if isinstance(cls.task, property) and not set_up else dataset.task,
        "model": _with_settings(cls.model.name, cls.model),
        "recipe": _with_settings("", cls.recipe),
        "tells": [f"{key}={value}" for key, value in dataset.facts.items()],
        **(_data(dataset) if set_up else {"settings": _settings(cls)}),
    }


def _data(dataset: Dataset) -> dict[str, Any]:
    tables = {title: [dict(row) for row in table] for title, table in dataset.describe_data().items()}
    return {**tables, "warnings": list(dataset.warnings)}


def _settings(cls: type[Any]) -> list[dict[str, str]]:
    return [dict(zip(("name", "type", "default", "meaning"), row, strict=True)) for row in describe_settings(cls)]


def _suite(suite: Suite) -> dict[str, Any]:
    return {
        "name": suite.name,
        "kind": "suite",
        "about": f"{suite.title}\n\n{suite.about}".strip(),
        "budget": f"{suite.trials} trials × {suite.seeds} seeds, chosen by {suite.selector}; a mode may differ",
        "boards": [
            {
                "name": board.name,
                "title": board.title,
                "dataset": board.dataset,
                "settings": "; ".join(
                    " ".join(f"{key}={value}" for key, value in settings.items()) for settings in board.settings
                ),
                "methods": ", ".join(board.methods),
            }
            for board in suite.boards
        ],
        "modes": [
            {"name": mode.name + (" (default)" if mode.name == suite.mode else ""), "about": mode.about}
            for mode in suite.modes.values()
        ],
    }


def _with_settings(name: str, instance: Any) -> str:
    """The settings that are not as usual."""
    return " ".join([name, *(f"{key}={value}" for key, value in changed(instance).items())]).strip()
