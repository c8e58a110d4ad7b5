"""How methods travel to workers: by name where it is installed there, else with their source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from oodbench.plugin.points import points

UNPICKLABLE: tuple[str, ...] = ("torch.classes", "torch.ops")
INSTALLED = ("site-packages", "dist-packages")


def pickled(value: Any, *classes: type) -> bytes:
    """The value for a worker, with the modules of these classes where nobody installs them."""
    from ray import cloudpickle

    for cls in classes:
        _send_along(cls)
    # cloudpickle takes an attribute for a submodule of that name, which cannot be pickled: rows.classes
    hidden = {name: sys.modules.pop(name) for name in UNPICKLABLE if name in sys.modules}
    try:
        content: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    finally:
        sys.modules.update(hidden)
    return content


def _send_along(cls: type) -> None:
    """A class from a folder on the driver's path goes with the modules of that folder: a worker has another path."""
    from ray import cloudpickle

    package = cls.__module__.partition(".")[0]
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if package == "__main__" or file is None or any(part in INSTALLED for part in Path(file).parts):
        return
    if package == "oodbench" or package in _plugin_packages():
        return
    folder = Path(file).parent
    for module in list(sys.modules.values()):
        beside = getattr(module, "__file__", None)
        if beside is not None and Path(beside).parent == folder and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _plugin_packages() -> set[str]:
    """Of installed plug-ins, editable ones too, which lie outside of site-packages."""
    return {point.module.partition(".")[0] for kind in ("method", "dataset", "model") for point in points(kind)}
