"""`oodbench new`: an installable plug-in of one method or dataset, with a passing test."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from oodbench.errors import UnknownName, UserError

KINDS = ("method", "dataset")


def write_plugin(kind: str, name: str, directory: Path) -> Path:
    """The new folder `directory/name`."""
    if kind not in KINDS:
        raise UnknownName("kind of plug-in", kind, KINDS)
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise UserError(
            f"{name!r} is not a name in snake case.\nWrite it like my_method: small letters, digits, underscores."
        )
    folder = directory / name
    if folder.exists():
        raise UserError(f"{folder} exists already.\nChoose another name or --directory.")
    words = {"name": name, "class_name": "".join(word.capitalize() for word in name.split("_"))}
    template = files("oodbench.plugin").joinpath("templates", kind)
    for source, target in {
        "pyproject.toml.txt": "pyproject.toml",
        "plugin.py.txt": f"src/{name}/__init__.py",
        "test_plugin.py.txt": f"tests/test_{name}.py",
    }.items():
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template(template.joinpath(source).read_text(encoding="utf-8")).substitute(words)
        path.write_text(text, encoding="utf-8")
    return folder
