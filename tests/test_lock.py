"""requirements.lock: every requirement, as constraints.txt pins it, with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from places import ROOT

LINES = (ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
LOCKED = {
    canonicalize_name(Requirement(line.partition(" --hash")[0]).name): line for line in LINES if line[:1].isalnum()
}
PINNED = {
    canonicalize_name(name): pin
    for name, _, pin in (line.partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    if pin
}


def needed_by(requirements: list[str], known: set[str]) -> set[str]:
    """The names of these requirements and of all that they need on this machine, without extras of theirs."""
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        extras = ["", *requirement.extras]
        if name in known or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        known.add(name)
        try:
            below = [text for text in requires(name) or () if _wanted(Requirement(text), extras)]
        except PackageNotFoundError:  # of another platform's torch
            continue
        needed_by([text.partition(";")[0] for text in below], known)
    return known


def _wanted(requirement: Requirement, extras: list[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def test_the_lock_has_all_that_an_installation_needs() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert needed_by(dependencies, set()) <= set(LOCKED)


def test_the_lock_pins_what_the_constraints_pin() -> None:
    versions = {name: re.search(r"==([^ ;]+)", line) for name, line in LOCKED.items()}
    assert {name: pin[1] for name, pin in versions.items() if pin and name in PINNED} == {
        name: pin for name, pin in PINNED.items() if name in LOCKED
    }
    # what torch needs on some platforms only is not part of the tested set
    beyond = {name for name in LOCKED if name not in PINNED}
    assert {name for name in beyond if not name.startswith(("cuda-", "nvidia-"))} == {
        "pywin32", "setuptools", "triton", "tzdata", "waitress",
    }  # fmt: skip


def test_every_file_has_a_hash_and_no_file_an_address() -> None:
    for line in LOCKED.values():
        assert re.fullmatch(r"[\w.-]+==\S+( ;.*?)?(\s+--hash=sha256:[0-9a-f]{64})+", line), line[:100]
    assert len(re.findall("--hash", LOCKED[canonicalize_name("torch")])) > 10  # of all platforms
    assert not any("://" in line or "index-url" in line for line in LINES)
