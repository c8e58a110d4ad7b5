"""Ray nodes on the loopback interface, one after another: a head, and others that can be lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"


@dataclass
class Nodes:
    """A cluster that is stopped node by node; each node is a session of processes of its own."""

    port: int
    folder: Path
    groups: dict[str, int] = field(default_factory=dict)  # name -> process group

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def start(
        self,
        name: str,
        cpus: int,
        environment: Mapping[str, str] | None = None,
        python: str | Path = sys.executable,
        gpus: int = 0,
    ) -> None:
        """With `--block`, `ray start` stays, and its processes stay in its group."""
        place = ["--head", f"--port={self.port}", "--include-dashboard=false"]
        if self.groups:
            place = [f"--address={self.address}"]
        else:
            place.append(f"--temp-dir={self.folder}")
        command = [
            str(python), "-m", "ray.scripts.scripts", "start", *place, f"--node-ip-address={HOST}",
            f"--num-cpus={cpus}", f"--num-gpus={gpus}", "--object-store-memory=100000000",
            "--disable-usage-stats", "--block",
        ]  # fmt: skip
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env={**os.environ, "RAY_AUTH_MODE": "disabled", **(environment or {})},
                start_new_session=True,
            )
        self.groups[name] = process.pid
        self._wait_for(len(self.groups))

    def lose(self, name: str) -> None:
        """As a machine that loses its power: every process at once, without a word."""
        for pid in self._session(self.groups.pop(name)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def workers(self) -> list[int]:
        """The processes that train now."""
        return [
            pid
            for session in self.groups.values()
            for pid in self._session(session)
            if b"ray::ImplicitFunc" in _read(pid, "cmdline")
        ]

    @staticmethod
    def _session(leader: int) -> list[int]:
        members = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                fields = _read(int(entry.name), "stat").rpartition(b")")[2].split()
                if len(fields) > 3 and int(fields[3]) == leader:
                    members.append(int(entry.name))
        return members

    def _wait_for(self, count: int) -> None:
        code = (
            f"import ray; ray.init({self.address!r}, log_to_driver=False, logging_level='ERROR'); "
            "print(sum(node['Alive'] for node in ray.nodes()))"
        )
        for _ in range(30):
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            )
            if done.stdout.strip() == str(count):
                return
            time.sleep(1)
        raise TimeoutError(f"{count} Ray nodes did not come up: {done.stdout} {done.stderr[-2000:]}")


@contextlib.contextmanager
def ray_nodes() -> Iterator[Nodes]:
    # Ray's sockets need a short path
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        nodes = Nodes(_free_port(), Path(folder))
        try:
            yield nodes
        finally:
            for name in list(nodes.groups):
                nodes.lose(name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
