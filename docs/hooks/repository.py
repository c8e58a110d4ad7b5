"""Files of the repository that are pages of the site where they are, outside docs/: each text has one home.

Links between them are written as they are in the repository, where they work too. On the site docs/ is the root.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
BESIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "datasets/README.md",
    "methods/README.md",
    "leaderboards/**/*",
    "oodbench/suite/shipped/*.toml",
)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for pattern in BESIDE:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                name = path.relative_to(ROOT).as_posix()
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are on the site."""
    here = page.file.src_uri
    in_repository = here if page.file.generated_by else f"docs/{here}"

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), link[1]))
        return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(here) or ".")

    return LINK.sub(on_site, markdown)
