"""Datasets described in a TOML file: an installed dataset with settings of its own, known by the name of the file.

dataset = "table"

[settings]
path = "trips.csv"  # relative to the folder of this file
target = "late"
"""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from glob import has_magic
from pathlib import Path
from typing import Any, get_type_hints

from oodbench.errors import InvalidSetting, UnknownName, UserError, did_you_mean
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.reading import read_bounded
from oodbench.plugin.registry import find, names
from oodbench.settings.fields import as_dict, configure

KEYS = ("dataset", "settings")


def is_path(name: str) -> bool:
    """As with suites: anything with a / or that ends in .toml."""
    return "/" in name or name.endswith(".toml")


def is_description(name: str) -> bool:
    """Whether the file says which dataset it describes."""
    try:
        return is_path(name) and "dataset" in _read(name)
    except UserError:
        return False


def find_dataset(name: str) -> tuple[str, type[Dataset]]:
    """A dataset as it is shown, and its class: an installed one by its name, or a described one by the path."""
    if not is_path(name):
        if name not in names("dataset") and Path(f"{name}.toml").is_file():
            raise UserError(f"there is no installed dataset {name!r}.\nName the file that describes it: {name}.toml.")
        return name, find("dataset", name)
    shown = Path(name).stem
    if shown in names("dataset"):
        raise UserError(f"{name} has the name of an installed dataset, {shown!r}.\nRename the file.")
    return shown, _described(name)


def write_description(dataset: str, file: str, settings: Mapping[str, str], folder: Path) -> Path:
    """A description of a user's file, to be edited: the settings that are given, and those that are needed."""
    cls = find("dataset", dataset)
    if not cls.essential:
        raise UserError(f"dataset {dataset!r} reads no file of yours.\n`oodbench show {dataset}` lists its settings.")
    path, *needed = cls.essential
    stem = Path(file).name.partition(".")[0]
    target = folder / f"{Path(file).parent.name or 'table' if has_magic(stem) else stem}.toml"
    if target.exists():
        raise UserError(f"{target} exists already.\nEdit it, or choose another --directory.")
    if path in settings:
        raise UserError(f"--set {path}=... does not go with a file.\nLeave it out.")
    relative = file if Path(file).is_absolute() else Path(os.path.relpath(file, folder)).as_posix()
    values = as_dict(configure(cls, {path: relative, **settings}, f"dataset {dataset!r}"))
    lines = [
        f"# `oodbench show {target.name}` says how the data is read; `oodbench show {dataset}` lists all settings."
    ]
    lines += [f'dataset = "{dataset}"', "", "[settings]"]
    lines += [f"{name} = {_toml(values[name])}" for name in dict.fromkeys([path, *needed, *settings])]
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def _read(name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bounded(Path(name)).decode())
    except OSError as error:
        raise UserError(f"dataset {name} cannot be read: {error.strerror}.\nCheck the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"dataset {name} is not valid TOML: {reason}.\nSee https://toml.io for how it is written."
        ) from None


def _described(name: str) -> type[Dataset]:
    """A class like that of the dataset, with the settings of the file as its defaults."""
    content = _read(name)
    for key in content:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS)
            raise UserError(f"{name}: there is no key {key!r}.{hint}\nKnown here: {', '.join(KEYS)}.")
    base, settings = content.get("dataset"), content.get("settings", {})
    if not isinstance(base, str) or not isinstance(settings, dict):
        raise UserError(
            f'{name} is not the description of a dataset.\nWrite dataset = "table", and a table [settings].'
        )
    if base not in names("dataset"):
        raise UnknownName(f"dataset (in {name})", base, names("dataset"))
    cls: type[Dataset] = find("dataset", base)
    for key, value in settings.items():
        if not _is_plain(value) and not (isinstance(value, list) and all(map(_is_plain, value))):
            raise InvalidSetting(f"{name}: {key} must be a text, a number, true or false, or a list of these.")
    for path in cls.essential[:1]:
        if isinstance(settings.get(path), str) and settings[path]:
            settings = settings | {path: str(Path(name).parent / settings[path])}
    values = configure(cls, settings, f"{name}: dataset {base!r}")
    types = get_type_hints(cls)
    fields = [
        (field.name, types[field.name], dataclasses.field(default=getattr(values, field.name), metadata=field.metadata))
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
    ]
    # of the same name: random numbers, and with them the rows, do not depend on how the settings were given
    namespace = {"__doc__": cls.__doc__, "__module__": cls.__module__, "description": name}
    return dataclasses.make_dataclass(cls.__name__, fields, bases=(cls,), namespace=namespace, frozen=True)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
