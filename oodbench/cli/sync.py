"""oodbench sync: deliver concluded studies that the record could not take at the time."""

from __future__ import annotations

import json

import typer

from oodbench.cli.terminal import DirectoryOption, JsonOption, TrackingOption, app, output
from oodbench.study.directory import DIRECTORY


@app.command()
def sync(
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Deliver concluded studies that a run could not record because the server was unreachable or refused them.

    Each study goes to its own record, or to the one that --tracking-uri names. Nothing is recorded twice.

    Example: [bold]oodbench sync --tracking-uri http://127.0.0.1:5000[/bold]
    """
    from rich.markup import escape

    from oodbench.record.delivery import deliver_all

    deliveries = deliver_all(directory, tracking_uri)
    if as_json:
        print(json.dumps([delivery.as_dict() for delivery in deliveries], indent=2))
    else:
        for delivery in deliveries:
            word = "[red]kept[/red]     " if delivery.reason else "delivered"
            line = f"{delivery.title} to {delivery.record}" + (f": {delivery.reason}" if delivery.reason else "")
            output().print(f"{word} {escape(line)}", highlight=False, soft_wrap=True)
        if not deliveries:
            text = f"nothing in {directory} is waiting for delivery"
            output().print(text, markup=False, highlight=False, soft_wrap=True)
    if any(delivery.reason for delivery in deliveries):
        raise typer.Exit(1)
