"""Nothing that others can write is run, and nothing listens to the network."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from oodbench.search.packstore import PackStore
from oodbench.study.pack import Pack, PackResult
from places import ROOT

SOURCES = [path for folder in ("oodbench", "methods", "datasets") for path in (ROOT / folder).rglob("*.py")]
LOADS = re.compile(
    r"\b(pickle|cloudpickle|joblib|torch)\.loads?\(|\bread_pickle\(|allow_pickle=True|(?<![.\w])(eval|exec)\("
)


def test_pickles_are_loaded_only_where_they_were_just_made_or_are_ours() -> None:
    """A file that calls an unsafe loader must be known here, with its reason."""
    known = {
        "packstore.py": "this user's own unfinished work",
        "trainable.py": "what the driver sent to its own workers",
        "worker.py": "what the worker just made, to see whether it travels",
        "testing.py": "what a check just made, to see whether it travels",
    }
    found = {path.name for path in SOURCES if LOADS.search(path.read_text())}
    assert found == set(known)


PACK = Pack("study", 0, ())


@pytest.fixture
def store(tmp_path: Path) -> PackStore:
    return PackStore(tmp_path, SimpleNamespace(study_id="study", packs=[PACK]))  # type: ignore[arg-type]


def test_unfinished_work_is_for_its_owner_alone(store: PackStore) -> None:
    previous = os.umask(0)  # the most generous
    try:
        store.save(PACK, PackResult([], []))
    finally:
        os.umask(previous)
    (path,) = store.folder.glob("*.pickle")
    assert (path.stat().st_mode & 0o777, store.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(store.load()) == [0]


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.mkdir, ("exploded",))


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_pickle_that_others_could_have_written_is_not_loaded(
    store: PackStore, which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store.folder.mkdir(parents=True)
    path = store.folder / "pack-00000.pickle"
    content = pickle.dumps(Bomb())
    path.write_bytes(hashlib.sha256(content).digest() + content)
    path.chmod(0o666 if which == "file" else 0o600)
    store.folder.chmod(0o777 if which == "folder" else 0o700)
    assert store.load() == {}
    assert not (tmp_path / "exploded").exists()


LISTENING = """
import os
from pathlib import Path
from oodbench.search import cluster

def family(pid):
    lists = [thread / "children" for thread in Path(f"/proc/{pid}/task").iterdir()]
    children = [int(child) for some in lists for child in some.read_text().split()]
    return [pid, *(one for child in children for one in family(child))]

def sockets(pid):
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(file)
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]

with cluster(None):
    ours = {inode for pid in family(os.getpid()) for inode in sockets(pid)}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in ours:  # listening
                print(fields[1].partition(":")[0])
"""
LOCAL = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}  # 127.0.0.1, ::1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net")
def test_our_own_ray_listens_on_this_machine_only(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTENING], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True
    )
    addresses = done.stdout.split()
    assert len(addresses) >= 4, done.stderr  # it does listen
    assert set(addresses) <= LOCAL
