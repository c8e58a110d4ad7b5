"""A Ray of our own, for the length of a run: nobody else gets in, and nothing of it stays.

Whoever talks to Ray runs code in its workers, and its ports are open to every user of the machine. So each Ray of ours
has a token of its own, in a file that its owner alone can read, in a folder that nobody else can enter. The settings
say where that file is, not what is in it, and they are in force only while Ray starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from oodbench.errors import Unreachable

ONLY_HERE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
TOKEN_FILE = "token"
PREFIX = "oodbench-ray-"
SCRATCH_PREFIX = "oodbench-tune-"
LONGEST_SOCKET = 107 if sys.platform == "linux" else 103  # bytes of a path
SOCKET = "/ray/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store"
END_SECONDS = 5
YOUNG_SECONDS = 60
HEEDED = {signal.SIGTERM, signal.SIGHUP}
_folders: set[Path] = set()


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for one Ray, with its token; at the end it is gone. Ray's own files have a folder in it, `ray`, because
    Ray lets everybody write into what it is given."""
    folder = _make_folder()
    _folders.add(folder)
    _remove_abandoned(folder.parent)
    try:
        descriptor = os.open(folder / TOKEN_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # for as long as this process lives
            file.write(secrets.token_hex(32))
            file.flush()
            yield folder
    finally:
        remove_folders()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """For what Tune writes: it is gone at the end, also where the end does not wait for those that use it."""
    folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
    _folders.add(folder)
    try:
        yield folder
    finally:
        _folders.discard(folder)
        _remove(folder)


def remove_folders() -> None:
    """Those of this process, and what still runs for them."""
    while _folders:
        folder = _folders.pop()
        if "ray" in sys.modules:
            _end_processes(folder)
        _remove(folder)


@contextlib.contextmanager
def own_settings(folder: Path) -> Iterator[None]:
    """What Ray reads from the environment while it is imported and started. It keeps what it read; what else this
    process starts does not get it."""
    settings = {
        ONLY_HERE: os.environ.get(ONLY_HERE, "0"),  # on Linux, Ray listens to the whole network unless told otherwise
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(folder / TOKEN_FILE),
        "RAY_AUTH_TOKEN": None,  # one that the user has for another cluster would come first
    }
    before = {name: os.environ.get(name) for name in settings}
    _set(settings)
    try:
        yield
    finally:
        _set(before)


def read_settings_again() -> None:
    """Ray reads them once in the life of a process, and this one may have talked to another Ray before."""
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def all_ended(folder: Path) -> Iterator[None]:
    """Around `ray.shutdown`, which does not end what was just being started: afterwards no process of the Ray that
    works in the folder is left, nor of those that it started."""
    family = _family(folder)
    try:
        yield
    finally:
        _kill(family)


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """A terminal that closes signals the group of a command, SLURM all processes of a job. Were Ray's to end then, Ray
    would end this process without a word. So they heed no such signal: we end them, or the kernel does with us."""
    from ray._private import services

    usual = services.ConsolePopen

    class Apart(usual):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, preexec_fn: Callable[[], None], **options: Any) -> None:
            def prepare() -> None:
                signal.pthread_sigmask(signal.SIG_BLOCK, HEEDED)
                preexec_fn()

            super().__init__(*args, preexec_fn=prepare, process_group=0, **options)

        def terminate(self) -> None:
            self.kill()

    if sys.platform == "linux":  # elsewhere Ray relies on the group to end them
        services.ConsolePopen = Apart  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        services.ConsolePopen = usual  # type: ignore[misc]


@contextlib.contextmanager
def few_processes() -> Iterator[None]:
    """Ray would start one that reads the workers' logs for drivers that show them, and one that asks a cloud for
    machines. A Ray of our own has no use for them, and each takes the time of a core while the workers start."""
    from ray._private import parameter

    usual = parameter.RayParams
    parameter.RayParams = partial(usual, include_log_monitor=False, no_monitor=True)  # type: ignore
    try:
        yield
    finally:
        parameter.RayParams = usual  # type: ignore[misc]


def heed_signals() -> None:
    """In a worker, which has it from Ray's processes that it does not: what a plug-in starts can be ended."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEEDED)


def _set(settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _make_folder() -> Path:
    """In the temporary directory, or in the system's where that leaves a socket too long a path."""
    asked = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    for parent in (Path(asked).absolute(), Path("/tmp"), Path("/var/tmp")):
        if len(os.fsencode(f"{parent}/{PREFIX}12345678{SOCKET}")) <= LONGEST_SOCKET:
            with contextlib.suppress(OSError):
                return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    raise Unreachable(
        f"Ray cannot use the temporary directory {asked[:200]}: it cannot be written, or its path is too long.\n"
        "Set TMPDIR to a folder with a shorter path."
    )


def _remove_abandoned(parent: Path) -> None:
    """Folders of runs that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < YOUNG_SECONDS:
                continue  # another's, or just being made
            with (folder / TOKEN_FILE).open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _end_processes(folder: Path) -> None:
    """Workers that were just being started when their Ray ended, and what plug-ins started in workers: they have the
    path of the token in their environment."""
    import psutil  # type: ignore[import-untyped]  # comes with ray

    family, token = _family(folder), str(folder / TOKEN_FILE)  # first: what is killed has no children any more
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get("RAY_AUTH_TOKEN_PATH") == token:
                family.append(process)
    _kill(family)


def _family(folder: Path) -> list[Any]:
    """The processes of the Ray that works in the folder, and those that they started: these often show neither a
    command line nor an environment, because Ray gives them a title in that memory."""
    import psutil

    family = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any(str(folder) in argument for argument in child.cmdline()):
                family += [child, *child.children(recursive=True)]
    return family


def _kill(processes: list[Any]) -> None:
    import psutil

    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=END_SECONDS)


def _remove(folder: Path) -> None:
    for _ in range(20):  # what has just ended may still be writing
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
