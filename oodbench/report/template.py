"""Pages from Jinja templates: one set-up for all of them, with the style sheet and the script that they share."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any


def render_template(package: str, name: str, **values: Any) -> str:
    """The template beside a package's modules, with `css`, `script` and its digest, and these values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css, script = ((Path(__file__).parent / file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(name).render(css=css, script=script, script_digest=digest, **values)
