"""What a field is, for the reference: its trailing comment, or the meaning that it is declared with."""

from __future__ import annotations

import ast
from typing import Any

from griffe import Attribute, Docstring, Extension

HELP_AT = {"setting": 1, "option": 1, "assignments": 0}  # which argument says what the field means


class Attributes(Extension):
    def on_attribute_instance(self, *, node: Any, attr: Attribute, **_: Any) -> None:
        if attr.docstring is None and isinstance(node, ast.AnnAssign):
            text = _meaning(node) or _comment(attr)
            attr.docstring = Docstring(text, lineno=attr.lineno, parent=attr) if text else None


def _meaning(node: ast.AnnAssign) -> str:
    if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in HELP_AT:
        said = node.value.args[HELP_AT[ast.unparse(node.value.func)]]
        return said.value if isinstance(said, ast.Constant) else ast.unparse(said).strip("f'\"")
    return ""


def _comment(attr: Attribute) -> str:
    line = attr.lines_collection[attr.filepath][(attr.endlineno or 1) - 1]
    comment = line.partition("  # ")[2].strip()
    shape, closed, rest = comment.partition("]")
    return f"`{shape}]`{rest}" if closed and shape.startswith("[") else comment
