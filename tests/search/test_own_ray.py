"""A Ray of our own: other users of the machine do not get in, and nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from family import family

RUN = [
    sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias", "--set", "majority=200", "--set",
    "minority=40", "--set", "test_rows=50", "--trials", "4", "--seeds", "2", "--set-training", "steps=6000",
]  # fmt: skip
OTHER_USER = 65534
ATTACK = f"""
import os, pickle, sys
import ray
from ray._raylet import AuthenticationTokenLoader, Config, GcsClient
address, folder, target = sys.argv[1:]
os.setgroups([]); os.setgid({OTHER_USER}); os.setuid({OTHER_USER})

class Bomb:
    def __reduce__(self):
        return (os.system, (f"touch {{target}}",))

for settings in (dict(RAY_AUTH_MODE="disabled"), dict(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64)):
    os.environ.update(settings)
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
    try:
        client = GcsClient(address=address)
        for key in [b"attack", *client.internal_kv_keys(b"", b"fun")]:
            client.internal_kv_put(key, pickle.dumps(Bomb()), True, b"fun")
        print("got in")
    except Exception as error:
        print("refused", type(error).__name__, str(error).replace(chr(10), " ")[:100])
for look in (lambda: os.listdir(folder), lambda: open(folder + "/token")):
    try:
        look()
        print("got in")
    except OSError as error:
        print("refused", type(error).__name__)
"""


def setting(directory: Path, name: str) -> str:
    """What Ray's processes were started with; everybody can read that."""
    for process in family(directory):
        for argument in process.joinpath("cmdline").read_text().split("\0"):
            if argument.startswith(f"--{name}="):
                return argument.partition("=")[2]
    return ""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, as this test does")
def test_another_user_does_not_get_into_a_run(tmp_path: Path) -> None:
    """The temporary directory has a path too long for sockets, too, so Ray's folder is elsewhere."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    target = Path("/tmp") / f"attacked-{os.getpid()}"
    running = subprocess.Popen(
        RUN,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(long)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + 90
        while not setting(tmp_path, "temp_dir") and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        address, folder = setting(tmp_path, "gcs-address"), Path(setting(tmp_path, "temp_dir")).parent
        attack = [sys.executable, "-c", ATTACK, address, str(folder), str(target)]
        done = subprocess.run(attack, capture_output=True, text=True, timeout=90, check=False)
        assert running.poll() is None, "the run ended before the attack"
        lines = done.stdout.splitlines()
        assert len(lines) == 4, done.stdout + done.stderr
        assert all(line.startswith("refused") for line in lines), done.stdout
        assert all("InvalidAuthToken" in line for line in lines[:2]), done.stdout
        token = folder.joinpath("token").read_text()
        shown = [path.read_bytes() for name in ("cmdline", "environ") for path in (p / name for p in family(tmp_path))]
        logged = [path.read_bytes() for path in folder.glob("ray/*/logs/**/*") if path.is_file()]
        assert logged
        out, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    assert not target.exists()
    assert running.returncode == 0, out
    recorded = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(token) == 64
    assert not any(token.encode() in content for content in [*shown, *logged, *recorded, out.encode()])
    assert not folder.exists()
    assert list(long.iterdir()) == []


def test_ray_that_does_not_start_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray gives up after 30 seconds, with an exception of no kind."""
    import ray

    from oodbench.errors import Unreachable
    from oodbench.search.cluster import cluster

    def late(**options: object) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", late)
    monkeypatch.setattr(sys.modules[cluster.__module__], "_is_connected", lambda: False)  # as other tests are
    with (
        pytest.raises(Unreachable, match="does not start on this machine: The current node .*\nGive the same command"),
        cluster(None),
    ):
        pass
