"""What decides the bits of a result besides the code: the processor, and the packages that calculate."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

CALCULATING = ("numpy", "pandas", "pyarrow", "scipy", "torch")
IDENTIFYING = ("model name", "cpu family", "model")  # hypervisors shorten the name


@dataclass(frozen=True)
class Machine:
    system: str
    cpu: str
    instructions: str  # the widest that torch uses
    python: str
    packages: Mapping[str, str]

    def differences(self, later: Machine) -> list[str]:
        """In what they differ, so that the same bits cannot be expected."""
        before, now = ({**asdict(machine), **machine.packages} for machine in (self, later))
        names = [name for name in before | now if name != "packages"]
        return [f"{name} {before.get(name)} → {now.get(name)}" for name in names if before.get(name) != now.get(name)]


def this_machine() -> Machine:
    import torch

    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
        instructions=torch.backends.cpu.get_cpu_capability(),
        python=".".join(platform.python_version_tuple()[:2]),
        packages={name: version(name) for name in CALCULATING},
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:  # only Linux has it
        return platform.processor()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return ", ".join(f"{name} {facts[name]}" for name in IDENTIFYING if name in facts).removeprefix("model name ")
