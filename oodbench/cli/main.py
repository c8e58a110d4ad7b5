"""The command line: its commands, and what becomes of errors."""

from __future__ import annotations

import gc
import sys
import warnings
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, TyperInfo

from oodbench.cli import (  # noqa: F401  (they register)
    boards,
    compare,
    data,
    figures,
    models,
    nightly,
    plugins,
    run,
    site,
    stability,
    submissions,
    sync,
)
from oodbench.cli.signals import STOPPED, all_as_ctrl_c, end_now
from oodbench.cli.streams import guard_streams
from oodbench.cli.terminal import app
from oodbench.errors import Interrupted, Notice, OodbenchError
from oodbench.texts import printable
from oodbench.version import __version__

PANELS = {
    "Run and read": ("run", "leaderboard", "compare", "figures", "stability", "export", "predict", "ui", "sync"),
    "Hand in and publish": ("submit", "verify", "site"),
    "Plug-ins and data": ("list", "show", "data", "new", "check"),
    "Nightly": ("nightly",),
}
"""All commands in the order in which people need them, as `oodbench --help` shows them."""


class InOrder(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return [name for names in PANELS.values() for name in names]

    def make_context(self, *arguments: Any, **more: Any) -> Any:  # here, too, typer would end without a word
        try:
            return super().make_context(*arguments, **more)
        except KeyboardInterrupt:
            raise STOPPED from None

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise STOPPED from None


app.info.cls = InOrder
registered: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
for info in registered:
    command = info.name or getattr(info.callback, "__name__", "")
    info.rich_help_panel = next(panel for panel, names in PANELS.items() if command in names)


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Ours are for the user; those of others are shown as Python shows them."""
    ours = issubclass(category, Notice)
    text = f"notice: {message}\n" if ours else warnings.formatwarning(message, category, filename, lineno, line)
    print(printable(text), end="", file=file or sys.stderr)


def main() -> None:
    """Run the command line; errors of ours are two lines on standard error and an exit code."""
    guard_streams()
    gc.set_threshold(100_000)  # start-up makes many objects that all stay
    warnings.simplefilter("default", Notice)
    warnings.showwarning = _show_warning
    try:
        try:
            with all_as_ctrl_c():
                app()
        finally:
            sys.stdout.flush()  # at the interpreter's end it would be too late to say anything
    except Interrupted as stopped:
        end_now(stopped)
    except KeyboardInterrupt:  # before typer began
        end_now(STOPPED)
    except OodbenchError as error:
        first, _, rest = printable(str(error)).partition("\n")
        print(f"error: {first}" + (f"\n{rest}" if rest else ""), file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        name = printable(str(error.filename)[:200])
        print(f"error: {name}: {error.strerror}.\nName another file or folder.", file=sys.stderr)
        sys.exit(2)
    finally:
        gc.freeze()  # the interpreter's last collections would visit every object of torch and mlflow
