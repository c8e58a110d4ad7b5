"""Nothing that others can write is run, and nothing listens to the network."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from oodbench.engine.trial import Trial
from oodbench.errors import Notice, WorkError
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
    return PackStore(tmp_path, SimpleNamespace(study_id="study", packs=[PACK], is_extendable=False))  # type: ignore[arg-type]


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


def bomb(path: Path, mode: int = 0o600) -> None:
    content = pickle.dumps(Bomb())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(hashlib.sha256(content).digest() + content)
    path.chmod(mode)


@pytest.fixture
def work(store: PackStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of unfinished work, with a bomb in it."""
    monkeypatch.chdir(tmp_path)
    path = store.folder / "pack-00000.pickle"
    bomb(path)
    return path


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_pickle_that_others_could_have_written_is_not_loaded(store: PackStore, work: Path, which: str) -> None:
    (work if which == "file" else work.parent).chmod(0o777)
    with warnings.catch_warnings(record=True):
        assert store.load() == {}
    assert not Path("exploded").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_work_below_a_folder_that_others_can_write_is_not_used(store: PackStore, work: Path, mode: int) -> None:
    above = work.parents[2]
    if mode == 0o770:  # a group that is not the user's own
        if os.getuid() != 0:
            pytest.skip("only root can give folders away")
        os.chown(above, -1, 12345)
    above.chmod(mode)
    with pytest.warns(Notice, match=f"other users can write into {above}. Run chmod go-w {above}"):
        assert store.load() == {}
    assert not Path("exploded").exists()
    store.save(PACK, PackResult([], []))
    assert store._read(PACK) == PackResult([], [])  # what this process wrote itself


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_work_of_another_user_is_not_loaded(store: PackStore, work: Path, level: int) -> None:
    os.chown([work, *work.parents][level], 12345, -1)
    with warnings.catch_warnings(record=True):
        assert store.load() == {}
    assert not Path("exploded").exists()


def test_a_link_through_a_folder_of_others_is_not_followed(tmp_path: Path, work: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "link").symlink_to(tmp_path)
    study = SimpleNamespace(study_id="study", packs=[PACK], is_extendable=False)
    with pytest.warns(Notice, match=f"other users can write into {shared}"):
        assert PackStore(shared / "link", study).load() == {}  # type: ignore[arg-type]
    work.with_name("elsewhere").write_bytes(work.read_bytes())
    work.unlink()
    work.symlink_to("elsewhere")
    assert PackStore(tmp_path, study).load() == {}  # type: ignore[arg-type]
    assert not Path("exploded").exists()


FLIP = """
import os, sys
good, bad, name = sys.argv[1:]
while True:
    for target in (good, bad):
        try:
            if target == good:
                os.link(good, name + ".new")
            else:
                os.symlink(bad, name + ".new")
            os.replace(name + ".new", name)
            if os.path.exists(name + ".new"):  # of two links to one file the kernel leaves both
                os.unlink(name + ".new")
        except FileNotFoundError:
            pass
"""


def test_a_link_that_flips_while_it_is_read_is_never_followed(
    store: PackStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the file that was checked and one that everybody could have written."""
    monkeypatch.chdir(tmp_path)
    store.save(PACK, PackResult([], []))
    path = store.folder / "pack-00000.pickle"
    good, bad = tmp_path / "good", tmp_path / "bad"
    path.rename(good)
    bomb(bad, 0o666)
    flipping = subprocess.Popen([sys.executable, "-c", FLIP, str(good), str(bad), str(path)])
    outcomes = set()
    deadline = time.monotonic() + 2
    try:
        while time.monotonic() < deadline:
            fresh = PackStore(tmp_path, store.study)
            try:
                outcomes.add(str(fresh._read(PACK)))
            except WorkError as error:
                outcomes.add(str(error).partition(": ")[2].partition(":")[0])
    finally:
        flipping.kill()
        flipping.wait()
    assert not Path("exploded").exists()
    assert str(PackResult([], [])) in outcomes  # both were met
    assert any("Too many levels of symbolic links" in outcome for outcome in outcomes), outcomes


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


def test_packs_of_a_later_rung_are_known_by_their_trials(tmp_path: Path) -> None:
    """With other bits of a pack of the rung before, others may go on: then the results of these are not theirs."""

    def store_of(configuration: int) -> tuple[PackStore, Pack]:
        pack = Pack("study", 1, (Trial(configuration, {}, 0, 0),), rung=1)
        return PackStore(tmp_path, SimpleNamespace(study_id="study", packs=[PACK, pack], is_extendable=False)), pack  # type: ignore[arg-type]

    store, pack = store_of(configuration=3)
    store.save(pack, PackResult([], []))
    assert list(store.load(rung=1)) == [1]
    assert list(store_of(configuration=4)[0].load(rung=1)) == []
