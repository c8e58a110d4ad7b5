"""The reference of the command line, made by typer from the commands themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PLACE = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return markdown.replace(PLACE, describe_commands()) if PLACE in markdown else markdown


def describe_commands() -> str:
    command = [sys.executable, "-m", "typer", "oodbench.cli.main", "utils", "docs", "--name", "oodbench"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    commands = text[text.index("\n## ") :]  # what is before them lists them, cut short
    commands = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+", "", commands)
    commands = re.sub(r'<span style="font-weight: bold">(.*?)</span>', r"`\1`", commands)
    commands = re.sub(r"<span[^>]*>(.*?)</span>", r"\1", commands)
    return commands.replace("* `--help`: Show this message and exit.\n", "")
