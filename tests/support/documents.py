"""The documents of the repository as tests read them: pages, their blocks of code, the commands in those."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from places import ROOT

FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.M | re.S)
INLINE = re.compile(r"(?<!\\)`(oodbench [^`]+)`")  # an escaped one is text
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]*)\)")
COMMENT = re.compile(r"\s+# .*$")
CALL = re.compile(r"(?:^|[\s/(\"])(oodbench (?:'[^']*'|\"[^\"\n]*\"|[^|&;()>\"\n])*)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code. One with a title is a file of that name."""

    page: str
    line: int
    language: str
    title: str
    text: str

    def commands(self) -> list[str]:
        """Of a shell's block: one a line, without comments; a script with a #! is one."""
        if self.text.startswith("#!"):
            return [self.text]
        lines = self.text.replace("\\\n", " ").splitlines()
        commands = [" ".join(COMMENT.sub("", line).split()) for line in lines if not line.startswith("#")]
        return [command for command in commands if command]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """All Markdown files that people write or read: those of tests and templates are none."""
    found = [path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md"))]
    return sorted(path.as_posix() for path in found if path.parts[0] not in ("tests", "site"))


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> Iterator[Block]:
    text = read(page)
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["language"], found["title"] or "", found["text"])


def calls(page: str) -> list[str]:
    """Every `oodbench ...` in the shell's blocks of a page."""
    shell = [command for block in blocks(page) if block.language == "bash" for command in block.commands()]
    return [call.strip() for command in shell for call in CALL.findall(command)]


def mentions(page: str) -> list[str]:
    """Every `oodbench ...` in the text of a page: perhaps without its arguments, or with placeholders."""
    prose = FENCE.sub("", read(page))
    indented = re.findall(r"^    (oodbench .*)$", prose, re.M)
    return [" ".join(call.split()) for call in (*indented, *INLINE.findall(prose))]


def links(page: str) -> list[str]:
    """What a page links to or shows, without addresses on the web."""
    return LINK.findall(FENCE.sub("", read(page)))
