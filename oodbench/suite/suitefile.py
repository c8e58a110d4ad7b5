"""Suites from TOML files: those that ship, by name, and the user's own, by path. Every key is checked."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oodbench.errors import UnknownName, UserError, did_you_mean
from oodbench.plugin.described import is_path
from oodbench.plugin.reading import read_bounded
from oodbench.study.selectors import check_selector
from oodbench.study.spec import CHOOSE
from oodbench.suite.published import Figure, read_figures
from oodbench.suite.suite import BoardSpec, Curve, Mode, Suite, Way

SHIPPED = Path(__file__).parent / "shipped"
REQUIRED: Any = object()
KINDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def suite_names() -> list[str]:
    """The suites that ship."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def list_suites() -> list[dict[str, Any]]:
    """Those that ship, described as plug-ins are."""
    listed = []
    for name in suite_names():
        summary, broken = "", None
        try:
            summary = read_suite(name).title
        except UserError as error:
            broken = " ".join(str(error).split())
        listed.append({"kind": "suite", "name": name, "source": "oodbench", "summary": summary, "broken": broken})
    return listed


def read_suite(name: str) -> Suite:
    """A suite that ships, or the one in a file: anything with a / or that ends in .toml is a path."""
    own = is_path(name)
    path = Path(name) if own else SHIPPED / f"{name}.toml"
    if not own and name not in suite_names():
        remedy = f"Known: {', '.join(suite_names())}; a file of your own is named by its path, as ./{name}.toml."
        raise UnknownName("suite", name, suite_names(), remedy)
    shown = name if own else path.name
    try:
        content = tomllib.loads(read_bounded(path).decode())
    except OSError as error:
        raise UserError(f"suite {shown} cannot be read: {error.strerror}.\nCheck the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(
            f"suite {shown} is not valid TOML: {error}.\nSee https://toml.io for how it is written."
        ) from None
    return _suite(_Table(content, shown, ""), name, path.parent)


class _Table:
    """A table of the file, whose keys are taken one by one; a key that nobody takes is a mistake."""

    def __init__(self, values: Mapping[str, Any], file: str, key: str) -> None:
        self.values, self.file, self.key = values, file, key
        self.taken: list[str] = []

    def take(self, name: str, kind: type[Any], default: Any = REQUIRED) -> Any:
        self.taken.append(name)
        if name not in self.values:
            if default is REQUIRED:
                raise UserError(f"{self.file}: {self.where(name)} is missing.\nAdd {name} = ..., {KINDS[kind]}.")
            return default
        value = self.values[name]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            self.fail(name, f"must be {KINDS[kind]}, not {value!r}")
        return value

    def positive(self, name: str, default: Any = REQUIRED) -> Any:
        value = self.take(name, int, default)
        if value is not None and value < 1:
            self.fail(name, f"must be at least 1, not {value}")
        return value

    def texts(self, name: str, default: Any = REQUIRED) -> tuple[str, ...]:
        values = self.take(name, list, default)
        if not all(isinstance(value, str) for value in values):
            self.fail(name, f"must be a list of texts, not {values!r}")
        repeated = [value for value in values if values.count(value) > 1]
        if repeated:
            self.fail(name, f"names {repeated[0]!r} twice")
        return tuple(values)

    def table(self, name: str) -> _Table:
        return _Table(self.take(name, dict, {}), self.file, self.where(name))

    def tables(self) -> Iterable[tuple[str, _Table]]:
        """All that is in here, each of it a table."""
        for name in self.values:
            yield name, _Table(self.take(name, dict), self.file, self.where(name))

    def close(self) -> None:
        for name in self.values:
            if name not in self.taken:
                hint = did_you_mean(name, self.taken)
                raise UserError(
                    f"{self.file}: there is no key {self.where(name)!r}.{hint}\nKnown here: {', '.join(self.taken)}."
                )

    def where(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name

    def fail(self, name: str, problem: str, remedy: str = "") -> None:
        raise UserError(f"{self.file}: {self.where(name)} {problem}.{remedy}")


def _suite(top: _Table, name: str, folder: Path) -> Suite:
    methods = top.texts("methods", [])
    published = top.take("published", str, "")
    figures = read_figures(folder / published, f"{top.file}: published: {published}") if published else []
    title, about = top.take("title", str), top.take("about", str, "")
    tables = [table for table in top.take("boards", list) if isinstance(table, dict)]
    if not tables or len(tables) < len(top.values["boards"]):
        top.fail("boards", "must be a list of one or more tables", "\nWrite each as [[boards]].")
    boards: dict[str, BoardSpec] = {}
    for number, values in enumerate(tables):
        board = _board(_Table(values, top.file, f"boards[{number}]"), methods, figures, folder)
        if board.name in boards:
            top.fail(f"boards[{number}].name", f"is {board.name!r} a second time")
        boards[board.name] = board
    for figure in figures:
        if figure.board not in boards or figure.method not in boards[figure.board].methods:
            raise UserError(f"{figure.where}: there is no board {figure.board!r} with method {figure.method!r}.")
    modes = {mode: _mode(mode, table, boards) for mode, table in top.table("modes").tables()}
    if not modes:
        top.fail("modes", "is missing", "\nAdd at least one, as [modes.fair].")
    default = top.take("mode", str, next(iter(modes)))
    if default not in modes:
        top.fail("mode", f"is {default!r}, which is not among modes", f"\nKnown: {', '.join(modes)}.")
    selector = top.take("selector", str, "worst")
    try:
        check_selector(selector)
    except UserError as error:
        raise UserError(f"{top.file}: selector: {error}") from None
    trials, seeds = top.positive("trials", 20), top.positive("seeds", 10)
    top.close()
    return Suite(name, top.file, title, about, default, trials, seeds, selector, tuple(boards.values()), modes)


def _board(table: _Table, methods: tuple[str, ...], figures: list[Figure], folder: Path) -> BoardSpec:
    name = table.take("name", str)
    if not name.isidentifier():
        table.fail("name", f"must be a word that can name a file, not {name!r}")
    board = BoardSpec(
        name=name,
        title=table.take("title", str, name),
        dataset=_dataset(table.take("dataset", str), folder),
        settings=_settings(table),
        methods=table.texts("methods", list(methods)),
        metrics=table.texts("metrics", []),
        trials=table.positive("trials", None),
        curve=_curve(table.table("curve")),
        published=tuple(figure for figure in figures if figure.board == name),
        figures=table.take("figures", bool, False),
    )
    if not board.methods:
        table.fail("methods", "is missing", "\nList them here, or at the top for all boards.")
    if board.curve and len(board.settings) != 1:
        table.fail("settings", "must be a single setting on a board with a curve")
    if board.curve and board.figures:
        table.fail("figures", "does not go with a curve, which is a figure itself")
    table.close()
    return board


def _dataset(name: str, folder: Path) -> str:
    """A described dataset is named by a path that begins in the folder of the suite."""
    return str(folder / name) if is_path(name) else name


def _settings(table: _Table) -> tuple[Mapping[str, Any], ...]:
    """A list of tables is taken as it is; in a single table, lists are what to vary, in all combinations."""
    given = table.values.get("settings", {})
    table.taken.append("settings")
    if isinstance(given, dict):
        varied = [value if isinstance(value, list) else [value] for value in given.values()]
        given = [dict(zip(given, point, strict=True)) for point in itertools.product(*varied)]
    if not isinstance(given, list) or not given or not all(isinstance(settings, dict) for settings in given):
        table.fail("settings", "must be a table, or a list of tables", "\nFor example settings = { r1 = [1.5, 1.9] }.")
    return tuple(given)


def _curve(table: _Table) -> Curve | None:
    if not table.values:
        return None
    curve = Curve(
        hyper_parameter=table.take("hyper_parameter", str),
        values=tuple(table.take("values", list)),
        mark=table.take("mark", float, None),
        mark_about=table.take("mark_about", str, ""),
    )
    numbers = {value for value in curve.values if isinstance(value, int | float) and not isinstance(value, bool)}
    if len(numbers) < max(2, len(curve.values)):
        table.fail("values", "must be two or more different numbers")
    table.close()
    return curve


def _mode(name: str, table: _Table, boards: Mapping[str, BoardSpec]) -> Mode:
    methods_of_boards = list(dict.fromkeys(method for board in boards.values() for method in board.methods))
    special: dict[str, dict[str, Way]] = {}
    about, trials = table.take("about", str, ""), table.positive("trials", None)
    mixed = table.take("mixed", bool, False)
    choose = table.take("choose", str, CHOOSE[0])
    if choose not in CHOOSE:
        table.fail("choose", f"must be {' or '.join(CHOOSE)}, not {choose!r}")
    without = table.texts("without", [])
    for method in without:
        if method not in methods_of_boards:
            table.fail(
                "without", f"names {method!r}, which no board has", f"\nThey have: {', '.join(methods_of_boards)}."
            )
    methods = _ways(table.table("methods"), methods_of_boards)
    for board, ways in table.table("boards").tables():
        if board not in boards:
            raise UserError(f"{table.file}: there is no board for {ways.key}.\nThere are: {', '.join(boards)}.")
        special[board] = _ways(ways, boards[board].methods)
    table.close()
    return Mode(name, about, trials, mixed, choose, without, methods, special)


def _ways(table: _Table, methods: Iterable[str]) -> dict[str, Way]:
    ways = {}
    for method, way in table.tables():
        if method not in methods:
            raise UserError(
                f"{table.file}: {table.where(method)}: the boards it is for do not have this method.\n"
                f"They have: {', '.join(methods)}."
            )
        ways[method] = Way(
            preset=way.take("preset", str, ""),
            model=way.take("model", str, None),
            model_settings=way.take("model_settings", dict, {}),
            recipe=way.take("recipe", dict, {}),
            fix=way.take("fix", dict, {}),
            space=way.take("space", dict, {}),
            trials=way.positive("trials", None),
        )
        way.close()
        if ways[method].preset and ":" in method:
            way.fail("preset", "is for methods that are listed without one", "\nLeave it out, or list METHOD alone.")
    return ways
