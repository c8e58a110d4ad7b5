"""Standard streams that cannot take everything: full devices, closed ones, and encodings without our signs."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oodbench.cli.streams import make_console

Cli = Callable[..., Any]
OODBENCH = [sys.executable, "-m", "oodbench"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["show", "paper"], ["data", "list", "--json"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_told_in_two_lines(
    arguments: list[str], unbuffered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*OODBENCH, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=60
        )
    message = "error: standard output cannot be written: No space left on device.\nSend it elsewhere; "
    assert (done.returncode, done.stderr) == (1, message + "what was recorded is kept.\n")


def test_closed_streams(tmp_path: Path) -> None:
    """The reader of a pipe may leave; whoever starts us may give us no streams at all."""
    for redirection, code in (("| true", "0"), ("2>&- >&- <&-", "0")):
        line = f'"$0" -m oodbench list {redirection}; echo $?'
        done = subprocess.run(
            ["sh", "-c", line, sys.executable], capture_output=True, text=True, cwd=tmp_path, timeout=60
        )
        assert (done.stdout.split(), done.stderr) == ([code], "")


def test_an_encoding_without_our_signs(cli: Cli) -> None:
    commands = (["--help"], ["list"], ["show", "paper"], ["show", "größe→中"])
    ended = [cli(*words, environment={"PYTHONIOENCODING": "ascii"}) for words in commands]
    assert all((done.out + done.err).isascii() for done in ended)
    assert [done.code for done in ended] == [0, 0, 0, 2]
    assert "20 trials x 10 seeds" in ended[2].out
    assert "+----" in ended[2].out
    assert ended[3].err.startswith("error: there is no method, dataset, model, metric, selector or suite ")
    assert r"'gr\xf6\xdfe->\u4e2d'." in ended[3].err


@pytest.mark.parametrize(("encoding", "cell"), [("ascii", "* 0.395 +- 0.004"), ("latin-1", "* 0.395 ± 0.004")])
def test_tables_are_laid_out_with_what_is_shown(encoding: str, cell: str) -> None:
    from rich.table import Table

    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding, "oodbench.spelled")
    table = Table("method", "error")
    table.add_row("erm", "★ 0.395 ± 0.004")
    table.add_row("fdro", "0.4")
    make_console(file=file, width=80).print(table)
    file.flush()
    lines = buffer.getvalue().decode(encoding).splitlines()
    assert f"| erm    | {cell} |" in lines
    assert len({len(line) for line in lines}) == 1
