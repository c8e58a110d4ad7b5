"""Pages from Jinja templates: one set-up for all of them, with the style sheet that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def render_template(package: str, name: str, **values: Any) -> str:
    """The template beside a package's modules, with `css` and these values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    return environment.get_template(name).render(css=css, **values)
