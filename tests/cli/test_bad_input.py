"""Bad values for every option of every command, and bad suite files: a message and an exit code, never a traceback.

The commands are walked, so that a new option is covered as soon as it is there. `--hypothesis-profile long` tries many
more values (tests/faults).
"""

from __future__ import annotations

import contextlib
import gc
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oodbench.cli.main import main
from oodbench.cli.terminal import app
from places import FIGURES, SUITE

EXAMPLES = (settings.default or settings()).max_examples
QUICK = settings(
    max_examples=max(3, EXAMPLES // 25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NOBODY = "127.0.0.1:1"  # nothing listens there: what has passed all checks ends here, before anything starts
STOPS = ["--tracking-uri", f"http://{NOBODY}", "--address", NOBODY]
RECORD = ["--tracking-uri", f"http://{NOBODY}"]
BASE = {
    "run": ["--method", "erm", "--dataset", "selection_bias", *STOPS],
    "leaderboard": ["selection_bias", *RECORD],
    "figures": ["selection_bias", "--output", "figures", *RECORD],
    "stability": ["3f2a", *RECORD],
    "compare": ["3f2a", "erm", *RECORD],
    "nightly": ["paper", "--against", "baseline", "--address", NOBODY],
    "sync": RECORD,
    "submit": RECORD,
    "verify": ["nothing.zip"],
    "site": ["site", "--from", "boards"],
    "show": ["erm"],
    "check": ["no-such-package"],
    "new": ["method", "fresh"],
    "data fetch": ["acs_travel", "--from", "nowhere", "--data-dir", "data"],
    "data verify": ["--data-dir", "data"],
    "data list": ["--data-dir", "data"],
}
NASTY = [
    "", " ", "=", "a=", "=b", "a=b=c", "r1=nan", "r1=inf", "r1=1e999", "r1=", "r1=1,2", "majority=1e3", "majority=1.5",
    "../..", "/dev/null", "/proc/1/mem", ".", "~", "-1", "--", "1e3", "٣", "nan", "None", "null", "true", "x" * 300,
    "erm:", ":released", "srm:released", "srm:x:y", "[bold]", "[/red]", "fdro.alpha0=1", ".alpha0=1", "alpha0=0.1,",
    "learning_rate=0.01,0.1", "learning_rate=,", "mlp", "width=0", "width=,", "width=-3", "steps=1.5", "steps=-1",
    "batch=-1", "loss=x", "optimizer=", "http://[::1", "http://", "http://:0", "sqlite://", "sqlite:////proc/x/y.db",
    "ftp://x", "file:", "127.0.0.1:99999", "127.0.0.1:x", "ray://", "auto", "worst", "oracle", "cuda", "csv", "json",
    "md", "paper", "./x.toml", "9" * 40, "99999999999", "0", "MA,NY", "XX", "1-Year", "2018", "3f2a", "%s", "{}", "\\",
    "é", "random", "optuna", "asha", "none", "0s", "1e3m", "30s", "9" * 400 + "h", "environments", "HEAD:x", "latex",
]  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.integers().map(str),
    st.floats().map(str),
)


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


COMMANDS = dict(walk(typer.main.get_command(app)))
PARAMETERS = [(name, parameter) for name, command in COMMANDS.items() for parameter in command.params]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    message: str


def call(arguments: list[str]) -> Ended:
    """What `oodbench ...` comes to; anything that would be a traceback is raised here."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["oodbench", *arguments]),
        mock.patch.object(gc, "freeze"),  # of a process that ends, which this one does not
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ending:
            code = int(ending.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("OODBENCH_DATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_ending(ended: Ended, arguments: list[str], before: set[Path], folder: Path) -> None:
    assert ended.code in (0, 1, 2), arguments
    if ended.code == 0:
        assert ended.out.strip() or set(folder.iterdir()) > before, f"nothing was done: {arguments}"
    else:
        assert ended.message.strip() or ended.out.strip(), f"nothing was said: {arguments}"


@pytest.mark.parametrize(
    ("name", "parameter"), PARAMETERS, ids=[f"{name} {parameter.name}" for name, parameter in PARAMETERS]
)
@QUICK
@given(data=st.data())
def test_any_value_of_any_option_ends_well(folder: Path, name: str, parameter: Any, data: st.DataObject) -> None:
    base = BASE.get(name, [])
    if parameter.param_type_name == "argument":
        positions = [one.name for one in COMMANDS[name].params if one.param_type_name == "argument"]
        given_there = [value for value in base[: len(positions)] if not value.startswith("-")]
        options, position = base[len(given_there) :], positions.index(parameter.name)
        given_there = [*given_there, *[data.draw(TEXTS)] * (position + 1 - len(given_there))]
        given_there[position] = data.draw(TEXTS)
        arguments = [*name.split(), *options, "--", *given_there]
    elif parameter.is_flag:
        arguments = [*name.split(), *base, parameter.opts[0]]
    else:
        arguments = [*name.split(), *base, f"{parameter.opts[0]}={data.draw(TEXTS)}"]
    before = set(folder.iterdir())
    check_ending(call(arguments), arguments, before, folder)


@QUICK
@given(name=st.sampled_from(sorted(COMMANDS)), words=st.lists(TEXTS, max_size=4))
def test_any_words_end_well(folder: Path, name: str, words: list[str]) -> None:
    arguments = [*name.split(), *BASE.get(name, []), *words]
    if name == "ui" or "local" in words:
        return  # these would start something
    before = set(folder.iterdir())
    check_ending(call(arguments), arguments, before, folder)


LITERALS = [
    "0", "-1", "1", "2.5", "inf", "nan", "true", '""', '"erm"', '"fdro"', '"x y"', "[]", "{}", "[[]]", "[{}]",
    '["erm", "erm"]', '["erm", 1]', "{ a = 1 }", "{ r1 = [] }", "{ r1 = [[1]] }", "[{ r1 = 1.5 }, 3]", "1979-05-27",
    "07:32:00", "{ penalty = {} }", "{ penalty = [] }", '{ penalty = "" }', "9" * 40, '"../../x"', '"selection_bias"',
    '"spurious_correlation"', '"paper.csv"', '"mlp"', '"released"', '"/"',
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(LITERALS),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.lists(st.integers(-3, 3)).map(str),
)
KEYS = st.sampled_from(
    "title about mode trials seeds selector methods published boards modes name dataset settings metrics curve values "
    "hyper_parameter mark mark_about mixed without preset model model_settings training fix x modes.a boards.x".split()
)
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(" = ".join),
    st.sampled_from(
        ["[[boards]]", "[boards]", "[modes.a]", "[modes.a.methods.erm]", "[modes.a.boards.x.erm]", "[modes]"]
    ),
    st.text(max_size=10),
)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A valid file with a few lines changed, dropped, doubled or moved."""
    lines = SUITE.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[position].partition(" = ")
        kind = draw(st.sampled_from(["value", "key", "drop", "double", "insert", "cut"]))
        if kind == "value" and equals:
            lines[position] = f"{key} = {draw(VALUES)}"
        elif kind == "key" and equals:
            lines[position] = lines[position].replace(key, draw(KEYS), 1)
        elif kind == "drop":
            lines.pop(position)
        elif kind == "double":
            lines.insert(draw(st.integers(0, len(lines))), lines[position])
        elif kind == "insert":
            lines.insert(position, draw(LINES))
        else:
            lines[position] = lines[position][: draw(st.integers(0, len(lines[position])))]
    return "\n".join(lines)


@settings(QUICK, max_examples=EXAMPLES if EXAMPLES > 100 else 30)  # `tox -e faults` tries 2,500
@given(text=st.one_of(mutations(), st.lists(LINES, max_size=12).map("\n".join)))
def test_any_suite_file_ends_well(folder: Path, text: str) -> None:
    (folder / "mine.toml").write_text(text, encoding="utf-8", newline="")
    (folder / "figures.csv").write_text(FIGURES)
    ended = call(["run", "--suite", "./mine.toml", *STOPS])
    assert ended.code == 2, text  # a fault in the file, or at last nobody to record with
    assert ended.message.strip()
    assert call(["show", "./mine.toml", "--json"]).code in (0, 2)


@settings(QUICK, max_examples=max(5, EXAMPLES // 10))
@given(content=st.binary(max_size=200))
def test_any_bytes_as_a_suite_file_end_well(folder: Path, content: bytes) -> None:
    (folder / "mine.toml").write_bytes(content)
    assert call(["run", "--suite", "./mine.toml", *STOPS]).code == 2
