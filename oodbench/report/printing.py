"""The console that everything is printed on: texts of others do not steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from oodbench.texts import printable


class PlainConsole(Console):
    """Colours, bars and cursors are its own; control characters within texts are left out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
