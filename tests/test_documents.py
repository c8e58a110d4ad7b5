"""The documents: their commands can be parsed, their links lead somewhere, every page is on the site.

`tox -e docs` runs the commands.
"""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
from typing import Any

import pytest
import typer

import oodbench
import oodbench.cli.main  # registers the commands
from documents import calls, links, mentions, pages, read
from oodbench.cli.terminal import app
from oodbench.plugin.registry import names
from oodbench.study.estimators import PREFIX
from oodbench.suite.suitefile import suite_names
from places import ROOT

KNOWN = {"method": {*names("method")}, "dataset": {*names("dataset")}, "suite": {*suite_names()}}
COMMANDS: Any = typer.main.get_command(app)
SPOKEN_OF = ("MissingParameter", "BadOptionUsage")  # a command or option without what it takes
PLACEHOLDER = re.compile(r"[A-Z_]+|\.\.\.|…")


def parse(call: str) -> tuple[str, dict[str, Any]]:
    """The command and the values of its parameters; what typer refuses is raised."""
    words = [word.strip("[]") for word in shlex.split(call)[1:]]
    group, context, path = COMMANDS, COMMANDS.context_class(COMMANDS, info_name="oodbench"), []
    while hasattr(group, "resolve_command") and words and not PLACEHOLDER.fullmatch(words[0]):
        name, group, words = group.resolve_command(context, words)
        path.append(name)
    parameters: dict[str, Any] = {}
    if not hasattr(group, "resolve_command"):
        parameters = group.make_context(path[-1], words, parent=context).params
    return " ".join(path), parameters


def named(command: str, parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """The plug-ins and suites that a call names."""
    methods = [name for key in ("method", "methods") for name in parameters.get(key) or ()]
    found = [("method", name) for name in methods if not name.startswith(PREFIX)]  # an estimator is no plug-in
    for key in ("dataset", "datasets"):
        value = parameters.get(key) or ()
        found += [("dataset", name) for name in ([value] if isinstance(value, str) else value)]
    found += [("suite", parameters["suite"])] if parameters.get("suite") else []
    found += [("any", parameters["name"])] if command == "show" else []
    bare = [(kind, name.partition(":")[0]) for kind, name in found]
    return [(kind, name) for kind, name in bare if not (PLACEHOLDER.fullmatch(name) or name.endswith(".toml"))]


@pytest.mark.parametrize("page", pages())
def test_every_command_can_be_parsed_and_names_what_there_is(page: str) -> None:
    made = {words[3] for words in map(str.split, calls(page)) if words[1] == "new"}
    known = {**{kind: some | made for kind, some in KNOWN.items()}, "any": set.union(made, *KNOWN.values())}
    for call in (*calls(page), *mentions(page)):
        try:
            command, parameters = parse(call)
        except typer.Exit:  # --help, --version
            continue
        except Exception as error:
            if call in mentions(page) and type(error).__name__ in SPOKEN_OF:
                continue
            raise AssertionError(f"{call}: {error}") from error
        for kind, name in named(command, parameters):
            assert name in known[kind], f"{call}: there is no {kind} {name!r}"


@pytest.mark.parametrize("call", ["oodbench runn", "oodbench run --trails 5", "oodbench run --trials many"])
def test_what_is_not_a_command_is_noticed(call: str) -> None:
    with pytest.raises(Exception, match="No such|valid integer"):
        parse(call)


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        if anchor and target.suffix == ".md" and target.name != "reference.md":  # whose headings are made at build
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}
            assert anchor in slugs, f"{page} links to {link}"


def test_every_leaderboard_links_its_page() -> None:
    pages_of_boards = sorted(ROOT.glob("leaderboards/**/page/index.html"))
    assert pages_of_boards
    for page in pages_of_boards:
        readme = page.parents[1] / "README.md"
        assert "](page/index.html)" in readme.read_text(encoding="utf-8"), readme


def test_every_page_is_on_the_site_and_no_other() -> None:
    text = read("mkdocs.yml")
    nav = re.findall(r": (\S+\.md)$", text[text.index("nav:") :], re.M)
    assert len(nav) == len(set(nav))
    there = [page.removeprefix("docs/") for page in pages() if page.startswith("docs/")]
    beside = [page for page in nav if (ROOT / page).exists()]
    assert sorted(nav) == sorted([*there, *beside])


ALIASES = {"Tensor", "Value"}  # names for annotations


def test_every_public_name_is_in_the_reference() -> None:
    described = re.findall(r"^::: oodbench\.(\w+)$", read("docs/reference.md"), re.M)
    assert sorted(described) == sorted({*oodbench.__all__, "encoder", "kit"} - ALIASES)


@pytest.mark.parametrize("name", [name for name in oodbench.__all__ if name not in {"OodbenchError", *ALIASES}])
def test_every_public_name_has_an_example_that_is_python(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(getattr(oodbench, name)) or "")
    assert examples
    for example in examples:
        compile(example.source, name, "exec")


def test_the_picture_of_the_readme_is_light_enough() -> None:
    assert 10_000 < (ROOT / "docs" / "images" / "board.png").stat().st_size < 250_000
