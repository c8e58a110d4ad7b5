"""A training as it stands between two steps: plain arrays, of each trial its own.

Trials touch each other nowhere, so a checkpoint can be taken apart, and its trials can go on in another pack.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.trial import Trial

LENGTH = 8  # bytes before the header of a file, which say how long it is

Key = tuple[int, int, int]
"""Which trial it is: its configuration, its seed, and its entropy, which tells a stage's own trials from others."""


def key_of(trial: Trial) -> Key:
    return trial.configuration, trial.seed, trial.entropy


@dataclass(frozen=True, eq=False)
class Checkpoint:
    trials: tuple[Key, ...]
    step: int  # how many are done
    rule: str  # the name of the rule by which rows were explored, if there is one
    arrays: Mapping[str, NDArray[Any]]  # [trial, ...]

    def has(self, trials: Sequence[Trial]) -> bool:
        return set(map(key_of, trials)) <= set(self.trials)

    def take(self, trials: Sequence[Trial]) -> Checkpoint:
        """Of some of its trials, in their order."""
        place_of = {key: place for place, key in enumerate(self.trials)}
        keys = tuple(map(key_of, trials))
        places = [place_of[key] for key in keys]
        return Checkpoint(keys, self.step, self.rule, {name: array[places] for name, array in self.arrays.items()})

    @classmethod
    def join(cls, parts: Sequence[Checkpoint]) -> Checkpoint:
        """Of all trials of checkpoints after the same step."""
        first = parts[0]
        arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in first.arrays}
        return cls(tuple(key for part in parts for key in part.trials), first.step, first.rule, arrays)

    def to_bytes(self) -> bytes:
        """In the format of safetensors: nothing of it can run when it is read."""
        from safetensors.numpy import save

        about = json.dumps({"trials": self.trials, "step": self.step, "rule": self.rule})
        rowwise = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        content: bytes = save(rowwise, metadata={"about": about})
        return content

    @classmethod
    def from_bytes(cls, content: bytes) -> Checkpoint:
        from safetensors.numpy import load

        arrays = load(content)
        header = json.loads(content[LENGTH : LENGTH + int.from_bytes(content[:LENGTH], "little")])
        about = json.loads(header["__metadata__"]["about"])
        keys = tuple((int(configuration), int(seed), int(entropy)) for configuration, seed, entropy in about["trials"])
        return cls(keys, int(about["step"]), str(about["rule"]), arrays)
