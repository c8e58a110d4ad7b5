"""Whatever file a user names: a device without an end or a FIFO without a writer is refused at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oodbench.plugin.reading import read_bounded
from places import SUITE

TABLE = ("--set", "target=y", "--set", "environment=e", "--set", "train=a")


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("published", "device"),
        *((role, "fifo") for role in ("suite", "published", "table", "parquet", "scores", "baseline", "registry")),
    ],
)
def test_devices_and_fifos_are_refused_at_once(cli: Callable[..., Any], tmp_path: Path, role: str, kind: str) -> None:
    endless = Path("/dev/zero") if kind == "device" else tmp_path / "fifo"
    if kind == "fifo":
        os.mkfifo(endless)
    for name in ("rows.csv", "rows.parquet", "nightly.json", "census/registry.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(endless)
    (tmp_path / "mine.toml").write_text(SUITE.replace('"figures.csv"', f'"{endless}"'))
    commands = {
        "suite": ("run", "--suite", str(endless)),
        "published": ("show", "./mine.toml"),
        "table": ("run", "--method", "erm", "--dataset", "table", *TABLE, "--set", "path=rows.csv"),
        "parquet": ("run", "--method", "erm", "--dataset", "table", *TABLE, "--set", "path=rows.parquet"),
        "scores": ("compare", str(endless), str(endless)),
        "baseline": ("nightly", "./mine.toml", "--against", "."),
        "registry": ("data", "list", "--data-dir", "."),
    }
    (tmp_path / "figures.csv").touch()
    if role == "baseline":
        (tmp_path / "mine.toml").write_text(SUITE.replace('published = "figures.csv"\n', ""))
    done = cli(*commands[role], timeout=30)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 2), done.err
    assert "it is not a regular file" in done.err


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 << 20))
    assert len(read_bounded(path, 3 << 20)) == 3 << 20
    with pytest.raises(OSError, match="it is larger than 2 MB"):
        read_bounded(path, 2 << 20)
    os.truncate(path, 1 << 40)  # sparse
    with pytest.raises(OSError, match="it is larger than 16 MB"):
        read_bounded(path)
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path)
