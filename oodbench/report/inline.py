"""Figures inside a page: SVG whose letters are text, whose ink follows the page's theme, and whose points explain
themselves (`drawing.explain`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from oodbench.report.drawing import as_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # measured with it, and shown in the page's own
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
"""Of figures that are to be put inside a page, besides `style()`."""
THEMED = {"#000000": "var(--ink)", "#444444": "var(--ink)", "#dddddd": "var(--rule)", "#cccccc": "var(--rule)"}
NAMESPACE = re.compile(r"^\{[^}]*\}")
DECIMALS = re.compile(r"(\d+\.\d{2})\d+")


def inline_svg(figure: Figure, name: str, about: str) -> str:
    """The figure as an element of a page, named and described; its ids begin with the name."""
    explained: list[Any] = figure.findobj(lambda artist: hasattr(artist, "explanations"))
    for number, artist in enumerate(explained):
        artist.set_gid(f"explained-{number}")
    root = ElementTree.fromstring(as_bytes(figure, "svg"))
    _strip(root)
    groups = {element.get("id"): element for element in root.iter("g")}
    for number, artist in enumerate(explained):
        _explain(groups[f"explained-{number}"], artist.explanations)
    _rename(root, name)
    root.attrib |= {"role": "img", "aria-label": about, "style": f"aspect-ratio: {_ratio(root)}"}
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    return ElementTree.tostring(root, encoding="unicode")


def _strip(root: ElementTree.Element) -> None:
    """No namespaces, which pages do not need, no description of the writer, no styles that the page has."""
    for parent in root.iter():
        for child in list(parent):
            if NAMESPACE.sub("", str(child.tag)) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = NAMESPACE.sub("", str(element.tag))
        element.attrib = {NAMESPACE.sub("", key): value for key, value in element.attrib.items()}
        for key in ("d", "x", "y", "transform"):
            if key in element.attrib:
                element.attrib[key] = DECIMALS.sub(r"\1", element.attrib[key].replace("\n", ""))
        if "style" in element.attrib:
            element.attrib["style"] = _themed(element.attrib["style"], element.tag)
        if element.tag == "text":
            element.attrib["style"] = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", element.attrib["style"])
        elif element.tag != "tspan":
            element.text = None
        element.tail = None


def _themed(style: str, tag: str) -> str:
    for color, variable in THEMED.items():
        style = style.replace(color, variable)
    return style if tag == "text" else style.replace("#ffffff", "var(--ground)")  # white letters are on dark tiles


def _explain(group: ElementTree.Element, texts: tuple[str, ...]) -> None:
    templates = {id(inner) for defs in group.iter("defs") for inner in defs.iter()}
    drawn = list(group.iter("use")) or [path for path in group.iter("path") if id(path) not in templates]
    for element, text in zip(drawn, texts, strict=True):
        ElementTree.SubElement(element, "title").text = text


def _rename(root: ElementTree.Element, name: str) -> None:
    """Ids that something refers to get the figure's name in front; the others go."""
    whole = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', whole))
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in used:
            element.attrib["id"] = f"{name}-{own}"
        for key, value in element.attrib.items():
            if key == "href" and value.startswith("#"):
                element.attrib[key] = f"#{name}-{value[1:]}"
            elif "url(#" in value:
                element.attrib[key] = value.replace("url(#", f"url(#{name}-")


def _ratio(root: ElementTree.Element) -> str:
    _, _, width, height = root.attrib["viewBox"].split()
    return f"{float(width):.0f} / {float(height):.0f}"
