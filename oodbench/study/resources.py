"""Where a search runs, and what one of its packs may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from oodbench.errors import UserError

GPU_SHARE = 0.25  # of a GPU for one pack, unless said otherwise


@dataclass(frozen=True)
class Resources:
    """None of this changes what a study is: the same study may go on elsewhere."""

    address: str | None = None  # of a running Ray cluster; None starts one for the length of the run
    cpus_per_pack: float = 1.0
    gpus_per_pack: float | None = None  # None: a share where the device is a GPU
    trial_timeout: float | None = None  # seconds for one training

    def check(self, device: str) -> None:
        """All that can be said before anything starts."""
        if not 0 < self.cpus_per_pack < math.inf:
            raise UserError(f"--cpus-per-pack must be above 0, not {self.cpus_per_pack:g}.")
        if self.gpus_per_pack is None:
            return
        if not 0 < self.gpus_per_pack < math.inf:
            raise UserError(f"--gpus-per-pack must be above 0, not {self.gpus_per_pack:g}.")
        if self.gpus_per_pack > 1 and not float(self.gpus_per_pack).is_integer():
            raise UserError(f"--gpus-per-pack above 1 must be a whole number, not {self.gpus_per_pack:g}.")
        if device == "cpu":
            raise UserError("--gpus-per-pack does not go with --device cpu.\nLeave one of them out.")

    @property
    def threads(self) -> int:
        """Of torch, for one pack."""
        return max(1, math.floor(self.cpus_per_pack))

    def of_a_pack(self, device: str) -> dict[str, float]:
        """What a pack asks Ray for."""
        asked = {"CPU": float(self.cpus_per_pack)}
        if device.startswith("cuda"):
            asked["GPU"] = GPU_SHARE if self.gpus_per_pack is None else float(self.gpus_per_pack)
        return asked
