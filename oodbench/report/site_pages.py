"""What the pages of a site show: plain texts, table by table, with where they lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from oodbench.board.metrics import higher_is_better
from oodbench.errors import UnknownName
from oodbench.report.columns import title_of
from oodbench.report.committed import BoardRow, ChosenRow, CommittedBoard, DataBoard
from oodbench.report.text import ABSENT, count_text, number_text, spread_text
from oodbench.study.record import CONSTANT

WINS = (
    "Wins: no method has a significantly lower mean error over the test environments (tier 1), and some method has a "
    "significantly higher one. Ties: neither. Loses: some method has a significantly lower one. "
    "These tiers are computed from every seed and environment of the board, by the test that boards use: moderated "
    "paired t-test over seeds, 5 % level, Holm correction over all pairs."
)
NOT_RANKED = "Not ranked: a reference, other terms than the rest of the board, a failure, or too few seeds to tell."
TIERS = "Tier: as the board was compiled, of its first metric. Value ± spread (sample std over seeds)."
ERM = "erm"


@dataclass(frozen=True)
class Cell:
    text: str
    href: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    titles: list[str]
    rows: list[list[Cell]]
    words: tuple[str, ...]  # titles of columns that are no numbers
    legend: tuple[str, ...] = ()


@dataclass(frozen=True)
class SitePage:
    title: str
    about: tuple[str, ...] = ()
    sections: list[Section] = field(default_factory=list)
    links: list[Cell] = field(default_factory=list)
    home: str = ""


@dataclass(frozen=True)
class Entry:
    """A row of a board, as the page of its method shows it."""

    board: CommittedBoard
    page: str
    data: DataBoard
    row: BoardRow

    @property
    def tier(self) -> int | None:
        return self.data.tiers.get(self.row.label)

    @property
    def outcome(self) -> str:
        if self.tier is None:
            return ""
        return "loses" if self.tier > 1 else "wins" if self.beats else "ties"

    @property
    def beats(self) -> list[str]:
        return [label for label, others in self.data.worse_than.items() if self.row.label in others]

    @property
    def beaten_by(self) -> tuple[str, ...]:
        return self.data.worse_than.get(self.row.label, ())

    @property
    def against_erm(self) -> str:
        """Of the usual training, where the board has it."""
        same = [row.label for row in self.data.rows if row.method == ERM and row.label in self.data.tiers]
        if self.tier is None or not same or self.row.method == ERM:
            return ABSENT
        better, worse = (any(label in others for label in same) for others in (self.beats, self.beaten_by))
        return "better" if better else "worse" if worse else "no difference shown"

    @property
    def below_constant(self) -> bool:
        """Whether a constant prediction has the better value."""
        metric = self.board.metric
        constant = next((row.values.get(metric) for row in self.data.rows if row.label == CONSTANT), None)
        own = self.row.values.get(metric)
        return constant is not None and own is not None and _better(metric, constant.value, own.value)


def entries_of(board: CommittedBoard, page: str) -> list[Entry]:
    return [Entry(board, page, data, row) for data in board.settings for row in data.rows]


def boards_section(boards: Sequence[CommittedBoard], page_of: Callable[[CommittedBoard], str]) -> list[Section]:
    """Comparisons of methods, curves, and what nightly jobs compare with."""
    kinds = {
        "Boards": [board for board in boards if board.compares],
        "Curves over a hyper-parameter": [board for board in boards if board.curve],
        "Baselines of the nightly job, which are no comparison of methods": [
            board for board in boards if board.nightly and not board.curve
        ],
    }
    titles = ["board", "folder", "data", "methods", "tier 1, by mean error"]
    return [
        Section(
            title,
            titles,
            [_board_row(board, data, page_of(board)) for board in own for data in board.settings],
            ("board", "folder", "data", "tier 1, by mean error"),
        )
        for title, own in kinds.items()
        if own
    ]


def _board_row(board: CommittedBoard, data: DataBoard, page: str) -> list[Cell]:
    first = [label for label, tier in data.tiers.items() if tier == 1]
    methods = {row.method for row in data.rows if row.label != CONSTANT}
    return [
        Cell(board.title, page),
        Cell(board.place),
        Cell(data.dataset_id),
        Cell(str(len(methods))),
        Cell(", ".join(first) or ABSENT),
    ]


def methods_section(methods: Sequence[str], entries: Sequence[Entry], page_of: Callable[[str], str]) -> Section:
    """How often each wins and loses, over all dataset settings of all comparisons."""
    rows = []
    for method in methods:
        own = [entry for entry in entries if entry.row.method == method]
        ranked = [entry for entry in own if entry.tier is not None]
        counts = [
            len(own),
            *(sum(entry.outcome == outcome for entry in own) for outcome in ("wins", "ties", "loses")),
            sum(entry.against_erm == "better" for entry in ranked),
            sum(entry.against_erm == "worse" for entry in ranked),
            sum(entry.below_constant for entry in own),
        ]
        rows.append([Cell(method, page_of(method)), *(Cell(str(count)) for count in counts)])
    titles = ["method", "rows", "wins", "ties", "loses", "better than ERM", "worse than ERM", "worse than the constant"]
    return Section("Methods", titles, rows, ("method",), (WINS, NOT_RANKED))


def board_page(board: CommittedBoard, links: list[Cell], page_of: Callable[[str], str]) -> SitePage:
    sections = [_data_section(board, data, page_of) for data in board.settings]
    if board.chosen:
        rows = [(Cell(row.dataset_id), row) for row in board.chosen]
        sections.append(_chosen_section("Chosen hyper-parameters", "data", rows))
    about = (f"Boards of {board.place}.",) if board.place != "." else ()
    return SitePage(board.title, about, sections, links, "../index.html")


def _data_section(board: CommittedBoard, data: DataBoard, page_of: Callable[[str], str]) -> Section:
    curve = [board.curve] if board.curve else []
    shown = [title_of(metric) for metric in board.metrics]
    titles = ["method", *curve, "tier", *shown, "trials × seeds", "told", "failure"]
    rows = [
        [
            Cell(row.label, page_of(row.method)),
            *(Cell(row.at) for _ in curve),
            Cell(row.tier or ABSENT),
            *(Cell(_value(row, metric)) for metric in board.metrics),
            Cell(row.budget if row.label != CONSTANT else ABSENT),
            Cell(row.told or "nothing"),
            Cell(row.failure or ABSENT),
        ]
        for row in data.rows
    ]
    return Section(data.dataset_id, titles, rows, ("method", "told", "failure"), (TIERS,))


def method_page(
    method: str,
    entries: Iterable[Entry],
    chosen: Iterable[tuple[CommittedBoard, ChosenRow]],
    up: Callable[[str], str],
) -> SitePage:
    own = [entry for entry in entries if entry.row.method == method]
    titles = {outcome: f"Where it {outcome or 'is not ranked'}" for outcome in ("wins", "ties", "loses", "")}
    parts = {outcome: [entry for entry in own if entry.outcome == outcome] for outcome in titles}
    sections = [
        _entries_section(titles[outcome], part, up, (WINS if outcome else NOT_RANKED,))
        for outcome, part in parts.items()
        if part
    ]
    labels = {entry.row.label for entry in own}
    picked = [(Cell(f"{board.title}: {row.dataset_id}"), row) for board, row in chosen if row.label in labels]
    if picked:
        sections.append(_chosen_section("Chosen hyper-parameters", "board", picked))
    counts = ", ".join(f"{outcome or 'is not ranked'} on {len(part)}" for outcome, part in parts.items())
    about = f"Of {count_text(len(own), 'row')} on boards, it {counts}."
    return SitePage(method, (about,), sections, home="../index.html")


def _entries_section(
    title: str, entries: Sequence[Entry], up: Callable[[str], str], legend: tuple[str, ...]
) -> Section:
    titles = ["board", "data", "row", "tier", "value", "metric", "best", "beats", "beaten by", "against ERM"]
    titles += ["against the constant", "told"]
    rows = []
    for entry in entries:
        metric = entry.board.metric
        rows.append(
            [
                Cell(entry.board.title, up(entry.page)),
                Cell(entry.data.dataset_id),
                Cell(entry.row.label),
                Cell(number_text(entry.tier, "d")),
                Cell(_value(entry.row, metric)),
                Cell(title_of(metric)),
                Cell(_best(entry.data, metric)),
                Cell(str(len(entry.beats)), tip=", ".join(entry.beats)),
                Cell(str(len(entry.beaten_by)), tip=", ".join(entry.beaten_by)),
                Cell(entry.against_erm),
                Cell("worse" if entry.below_constant else ABSENT),
                Cell(entry.row.told or "nothing"),
            ]
        )
    words = ("board", "data", "row", "metric", "best", "against ERM", "against the constant", "told")
    return Section(title, titles, rows, words, legend)


def _chosen_section(title: str, first: str, rows: Sequence[tuple[Cell, ChosenRow]]) -> Section:
    names = sorted({name for _, row in rows for name in row.hparams})
    cells = [
        [where, Cell(row.label), Cell(row.search), *(Cell(_short(row.hparams.get(name, ""))) for name in names)]
        for where, row in rows
    ]
    legend = ("A row for each search, and where seeds chose apart, for each configuration that one chose.",)
    return Section(title, [first, "row", "search", *names], cells, (first, "row"), legend)


def _value(row: BoardRow, metric: str) -> str:
    own = row.values.get(metric)
    return ABSENT if own is None else spread_text(own.value, own.spread)


def _best(data: DataBoard, metric: str) -> str:
    known = [(row, row.values[metric].value) for row in data.rows if row.ranked and metric in row.values]
    if not known:
        return ABSENT
    best = known[0]
    for candidate in known[1:]:
        best = candidate if _better(metric, candidate[1], best[1]) else best
    return f"{best[0].label} {best[1]:.3f}"


def _better(metric: str, value: float, other: float) -> bool:
    try:
        return value > other if higher_is_better(metric) else value < other
    except UnknownName:  # of a plug-in that is not installed here
        return False


def _short(value: str) -> str:
    """A number with four digits if it has many more."""
    try:
        return f"{float(value):.4g}" if len(value) > 8 else value
    except ValueError:
        return value
