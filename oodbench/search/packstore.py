"""Finished packs on disk, each written whole or not at all, until their study is concluded.

A run that was stopped finds them here and continues. Models stay on disk until some are chosen: all of a long study
would fill the memory. The files are for this machine's next run, not for sharing: models that are kept go to the
record, as plain arrays. To load a pickle is to run what is in it, so the files are written for their owner alone, and
one that somebody else could have written is not loaded (`oodbench.search.ownership`).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oodbench.engine.checkpoint import Checkpoint, key_of
from oodbench.errors import Notice, WorkError
from oodbench.search.ownership import foreign_folder, read_own
from oodbench.search.trained import Trained
from oodbench.study.directory import make_folder, study_folder, write_atomically
from oodbench.study.document import write_document
from oodbench.study.pack import Pack, PackResult
from oodbench.study.record import Chosen
from oodbench.study.study import Study

CHECKSUM_BYTES = hashlib.sha256().digest_size


class PackStore:
    def __init__(self, directory: Path, study: Study) -> None:
        self.folder = study_folder(directory, study.study_id)
        self.trained = Trained(directory, study) if study.is_extendable else None
        self.study = study
        self.trusted: dict[int, bytes] = {}  # checksums of the packs that this process wrote or checked

    def save(self, pack: Pack, result: PackResult) -> PackResult:
        """The result without its models, which are on disk from now on."""
        import cloudpickle

        content = cloudpickle.dumps(result)
        checksum = hashlib.sha256(content).digest()
        write_atomically(self._path(pack), checksum + content)
        self.kept_path(pack).unlink(missing_ok=True)
        self.trusted[pack.index] = checksum
        return replace(result, predictors=[], checkpoint=None)

    def load(self, rung: int = 0) -> dict[int, PackResult]:
        """Results without models, by pack number, from this rung on. A file that is damaged, or may be another's, is as
        good as none: its pack runs again."""
        results: dict[int, PackResult] = {}
        on_disk = [pack for pack in self.study.packs if os.path.lexists(self._path(pack))]
        packs = [pack for pack in on_disk if pack.rung >= rung]
        foreign = foreign_folder(self.folder) if packs else None
        if foreign is not None:
            warnings.warn(
                f"the unfinished work in {self.folder} is not used: other users can write into {foreign}. "
                f"Run chmod go-w {foreign}, or name another --directory",
                Notice,
                stacklevel=2,
            )
            return results
        for pack in packs:
            try:
                results[pack.index] = replace(self._read(pack), predictors=[], checkpoint=None)
            except WorkError:
                self._path(pack).unlink(missing_ok=True)
        return results

    def checkpoint(self, pack: Pack) -> Checkpoint | None:
        """Where the trainings of a finished pack can go on from."""
        return self._read(pack).checkpoint

    def kept_path(self, pack: Pack) -> Path:
        """Where its worker keeps an unfinished pack."""
        return self._path(pack).with_suffix(".checkpoint").absolute()

    def make_folder(self) -> None:
        make_folder(self.folder, 0o700)

    def predictors(self) -> StoredPredictors:
        return StoredPredictors(self, self.study.packs)

    def _path(self, pack: Pack) -> Path:
        """What goes on to a later rung is known by its trials: with other bits of earlier packs, others may go on."""
        name = f"pack-{pack.index:05d}"
        if pack.rung:
            keys = str([key_of(trial) for trial in pack.trials])
            name += f"-{hashlib.sha256(keys.encode()).hexdigest()[:16]}"
        return self.folder / f"{name}.pickle"

    def _read(self, pack: Pack) -> PackResult:
        path = self._path(pack)
        try:
            ours, content = read_own(path)
            checksum = hashlib.sha256(content[CHECKSUM_BYTES:]).digest()
            if checksum != content[:CHECKSUM_BYTES]:
                raise ValueError("its checksum is wrong")
            if self.trusted.get(pack.index) != checksum and (not ours or foreign_folder(self.folder) is not None):
                raise PermissionError("others could have written it")
            self.trusted[pack.index] = checksum
            result: PackResult = pickle.loads(content[CHECKSUM_BYTES:])
        except Exception as error:  # unpickling may raise anything, above all when a plug-in has changed
            raise WorkError(f"{path} cannot be read: {error}.\nThe same command runs that pack again.") from None
        return result

    def write_selection(self, choice: Chosen) -> None:
        """Before the test environments are opened."""
        write_atomically(self.folder / "selection.json", write_document(choice))

    def take_up(self) -> Study:
        """The study, with the trainings that another search has done already: their packs are here from now on."""
        if self.trained is not None:
            self.study = self.trained.lend(self.folder)
        return self.study

    def retire(self, useful: bool) -> None:
        """The study is concluded. Its packs are there for a search that has the same trainings, and more."""
        if self.trained is not None and useful:
            self.trained.receive(self.study, self.folder)
        self.discard()

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class StoredPredictors(Mapping[tuple[int, int], Any]):
    """The models of a study by configuration and seed, read when they are asked for; one pack at a time is held."""

    def __init__(self, store: PackStore, packs: Sequence[Pack]) -> None:
        self.store = store
        self.places = {
            (trial.configuration, trial.seed): (pack, position)
            for pack in packs
            if pack.without is None
            for position, trial in enumerate(pack.trials)
        }
        self.held: tuple[int, list[Any]] = (-1, [])

    def __getitem__(self, key: tuple[int, int]) -> Any:
        pack, position = self.places[key]
        if self.held[0] != pack.index:
            self.held = (pack.index, self.store._read(pack).predictors)
        return self.held[1][position]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)
