"""Passwords and tokens in addresses, well-formed or not: nothing that is printed or stored has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oodbench.texts import redact, without_user

SECRET = "hunter2"
RUN = ["run", "-m", "erm", "-d", "selection_bias", "--trials", "1", "--seeds", "1"]
BOARD = ["leaderboard", "selection_bias"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([*BOARD, "--tracking-uri", "http://me:hunter2@[::1"], "--tracking-uri http://***@[::1 is not an address"),
        ([*BOARD, "--tracking-uri", "http://me:hunter2@127.0.0.1:x"], "answers at http://***@127.0.0.1:x: nonnumeric"),
        ([*BOARD, "--tracking-uri", "http://me:hun/hunter2@127.0.0.1:1"], "answers at http://***@127.0.0.1:1"),
        ([*BOARD, "--tracking-uri", "http://127.0.0.1:1/?access_token=hunter2"], "/?access_token=***: "),
        ([*BOARD, "--tracking-uri", "http://127.0.0.1:1/?x=1&api_key=hunter2#a"], "/?x=1&api_key=***#a: "),
        (["sync", "--tracking-uri", "http://hunter2@127.0.0.1:1"], "nothing in"),
        ([*BOARD, "--tracking-uri", "nonsense://me:hunter2@x"], "store nonsense://***@x does not work"),
        ([*BOARD, "--tracking-uri", "postgresql+pg8000://me:hunter2@x/d"], "://***@x/d needs a Python package"),
        ([*BOARD, "--tracking-uri", "mssql+pyodbc://me:hunter2@x"], "mssql+pyodbc://***@x needs a Python package"),
        ([*BOARD, "--tracking-uri", "mysql:///?password=hunter2"], "mysql:///?password=*** needs a Python package"),
        ([*RUN, "--address", "ray://me:hunter2@127.0.0.1:1"], "no Ray cluster answers at ray://***@127.0.0.1:1"),
        ([*RUN, "--address", "me:hunter2@127.0.0.1:1"], "no Ray cluster answers at ***@127.0.0.1:1"),
        ([*RUN, "--address", "ray://me:hunter2@[::1"], "--address 'ray://***@[::1' is not HOST:PORT"),
        ([*RUN, "--address", "ray://me:hunter2@127.0.0.1:x"], "--address 'ray://***@127.0.0.1:x' is not HOST:PORT"),
    ],
)
def test_no_secret_of_an_address_is_printed_or_stored(
    cli: Callable[..., Any], tmp_path: Path, command: list[str], expected: str
) -> None:
    done = cli(*command)
    said = done.out + done.err
    assert expected in said
    assert SECRET not in said
    assert "Traceback" not in said
    assert done.code == (0 if command[0] == "sync" else 2)
    assert len(done.err.splitlines()) == (0 if command[0] == "sync" else 2)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("address", "shown", "stored"),
    [
        ("http://me:hunter2@host:80/a", "http://***@host:80/a", "http://host:80/a"),
        ("http://me:hunter 2@host", "http://***@host", "http://host"),
        ("http://me:hunter2@x@host", "http://***@host", "http://host"),
        ("https://hunter2@host", "https://***@host", "https://host"),
        ("//me:hunter2@host", "//***@host", "//host"),
        ("http:/me:hunter2@host", "http:/***@host", "http:/host"),
        ("s3://host/a?X-Amz-Signature=hunter2", "s3://host/a?X-Amz-Signature=***", "s3://host/a?X-Amz-Signature=***"),
        ("http://host/path@v1", "http://host/path@v1", "http://host/path@v1"),
        ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
        ("127.0.0.1:6379", "127.0.0.1:6379", "127.0.0.1:6379"),
    ],
)
def test_one_function_for_every_address(address: str, shown: str, stored: str) -> None:
    assert redact(address) == shown
    assert without_user(address) == stored
    assert redact(f"no answer from {address}: timed out") == f"no answer from {shown}: timed out"
