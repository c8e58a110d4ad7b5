"""Processes that need not import torch, mlflow and ray again: forks of one that has imported them.

Each is a process of its own, with its own arguments, directory, environment and exit code, as if it had been started
by a shell. Only the first seconds are shared. Tests of those seconds start cold processes.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from asking import ask
from migrated import share_migrations

COMMANDS = (
    "torch", "ray.tune", "mlflow.pyfunc", "mlflow.tracking", "mlflow.store.tracking.sqlalchemy_store",
    "alembic.command", "pandas", "pyarrow.parquet", "scipy.stats", "matplotlib.figure",
    "matplotlib.backends.backend_svg", "oodbench.cli.main", "oodbench.api", "oodbench.report.page",
)  # fmt: skip
# not ray itself: when it is imported, it reads from the environment which job a worker is of
WORKERS = (
    "torch", "pandas", "pyarrow.parquet", "pyarrow.fs", "fsspec", "tensorboardX", "requests", "jsonschema", "pydantic",
    "aiohttp", "google.protobuf.message", "scipy.stats", "numpy", "filelock", "yaml", "packaging.version",
)  # fmt: skip
MOST = 1 << 20  # bytes of a request


@dataclass
class WarmProcess:
    """One that was started."""

    command: list[str]
    pid: int
    connection: socket.socket
    out: IO[bytes]
    err: IO[bytes]

    def wait(self, timeout: float) -> subprocess.CompletedProcess[str]:
        """Its end, once; or TimeoutExpired, and it goes on."""
        self.connection.settimeout(timeout)
        try:
            code = int(self.connection.recv(32))
        except TimeoutError:
            raise subprocess.TimeoutExpired(self.command, timeout, _text(self.out), _text(self.err)) from None
        done = subprocess.CompletedProcess(self.command, code, _text(self.out), _text(self.err))
        for end in (self.connection, self.out, self.err):
            end.close()
        return done


class WarmProcesses:
    """The client's side: `run` is `subprocess.run` of `python -m MODULE ...`, `start` is `subprocess.Popen`."""

    def __init__(self, template: Path, libraries: Sequence[str] = COMMANDS) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="warm-")  # a socket needs a short path
        self.path = Path(self.folder.name) / "socket"
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(self.path), str(template), *libraries], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def start(self, module: str, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> WarmProcess:
        out, err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  (`wait` closes them)
        connection = ask(str(self.path), module, arguments, str(cwd), environment, (out.fileno(), err.fileno()))
        return WarmProcess([module, *arguments], int(connection.recv(32)), connection, out, err)

    def run(
        self, module: str, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(module, arguments, cwd, environment)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            raise

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def _text(file: IO[bytes]) -> str:
    # the process that writes shares the position in the file: leave it there
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


def serve(path: str, template: Path, libraries: Sequence[str]) -> None:
    """Wait for requests; a supervisor each starts the process and tells its end."""
    for name in libraries:
        importlib.import_module(name)
    if "mlflow" in sys.modules:
        share_migrations(template)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors leave no zombies
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(8)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                supervise(connection)
            connection.close()


def supervise(connection: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, descriptors, _, _ = socket.recv_fds(connection, MOST, 2)
    pid = os.fork()
    if pid == 0:
        connection.close()
        become(json.loads(message), descriptors)
    connection.send(str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def become(request: dict[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """From here on this is `python -m MODULE ARGUMENTS`."""
    for target, descriptor in zip((1, 2), descriptors, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    paths = filter(None, request["environment"].get("PYTHONPATH", "").split(os.pathsep))
    encoding = request["environment"].get("PYTHONIOENCODING", "utf-8")
    sys.stdout.reconfigure(encoding=encoding)  # type: ignore[union-attr]
    sys.stderr.reconfigure(encoding=encoding)  # type: ignore[union-attr]
    sys.path[:1] = [request["cwd"], *(path for path in paths if path not in sys.path)]
    sys.argv = ["oodbench", *request["arguments"]]
    code: str | int | None = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
