"""`oodbench new`: an installable plug-in of one method or dataset, with a passing test."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from oodbench.errors import UnknownName, UserError

PLUGINS = ("method", "dataset")
METHOD_KINDS = ("loss", "fit", "stages")


def write_plugin(plugin: str, name: str, directory: Path, kind: str | None = None) -> Path:
    """The new folder `directory/name`; `kind` is the way a method is written."""
    if plugin not in PLUGINS:
        raise UnknownName("kind of plug-in", plugin, PLUGINS)
    if plugin == "dataset" and kind is not None:
        raise UserError("--kind is for methods.\nLeave it out for a dataset.")
    if plugin == "method" and (kind or "loss") not in METHOD_KINDS:
        raise UnknownName("kind of method", str(kind), METHOD_KINDS)
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise UserError(
            f"{name!r} is not a name in snake case.\nWrite it like my_method: small letters, digits, underscores."
        )
    folder = directory / name
    if folder.exists():
        raise UserError(f"{folder} exists already.\nChoose another name or --directory.")
    words = {"name": name, "class_name": "".join(word.capitalize() for word in name.split("_"))}
    template = files("oodbench.plugin").joinpath("templates", plugin)
    source = "dataset" if plugin == "dataset" else kind or "loss"
    for part, target in {
        "pyproject.toml.txt": "pyproject.toml",
        f"{source}.py.txt": f"src/{name}/__init__.py",
        "test_plugin.py.txt": f"tests/test_{name}.py",
    }.items():
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template(template.joinpath(part).read_text(encoding="utf-8")).substitute(words)
        path.write_text(text, encoding="utf-8")
    return folder
