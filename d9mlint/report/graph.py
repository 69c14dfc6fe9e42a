"""Pictures of a program: entry points, what they import, and how much of it is followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.paths import relative_to
from d9mlint.base.terminal import clean

if TYPE_CHECKING:
    from d9mlint.pipeline import Result

KINDS = {
    "main": "has a __main__ guard",
    "script": "computes at its top level, and nothing imports it",
    "console": "is called by a console script",
    "notebook": "is a notebook",
    "package": "runs with python -m",
    "named": "is named in the configuration",
}
"""Why a file is an entry point."""
NO_ENTRY = "No entry points."
UNREACHED = "Not reached from any entry point:"


class Graph(NamedTuple):
    """Entry points and what they reach by imports; all files relative to ``root``.

    ``entries`` are in path order, each with its file, its kind, the function a console script calls, and the files it
    reaches; ``imports`` are pairs of a file and one that it imports, as far as an entry point reaches them;
    ``unreached`` are the files that no entry point reaches.
    """

    root: str
    entries: list[dict[str, Any]]
    imports: list[tuple[str, str]]
    unreached: list[str]


class Share(NamedTuple):
    """How many statements of an entry point are followed."""

    followed: int
    total: int

    @property
    def text(self) -> str:
        """``12 of 15 statements followed``."""
        return f"{self.followed} of {self.total} statements followed"


def text(graph: Graph, result: Result | None = None) -> str:
    """Each entry point with the files that it reaches, then those that none reaches."""
    lines: list[str] = []
    for entry in graph.entries:
        lines.append(clean(f"{entry['entry']} ({entry['kind']})"))
        lines += [f"  {clean(path)}" for path in entry["reaches"]]
    lines = lines or [NO_ENTRY]
    if graph.unreached:
        lines += [UNREACHED, *(f"  {clean(path)}" for path in graph.unreached)]
    return "".join(f"{line}\n" for line in lines)


def dot(graph: Graph, result: Result | None = None) -> str:
    """A directed graph for Graphviz."""
    shares = _shares(graph, result)
    lines = ["digraph program {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for name, kind in _nodes(graph).items():
        label = json.dumps(
            clean(name) + (f"\n{shares[name].text}" if name in shares else ""), ensure_ascii=False
        )
        style = {"entry": ", style=bold", "unreached": ", style=dashed"}.get(kind, "")
        lines.append(f"  {_quoted(name)} [label={label}{style}];")
    lines += [f"  {_quoted(one)} -> {_quoted(other)};" for one, other in graph.imports]
    return "\n".join([*lines, "}"]) + "\n"


def mermaid(graph: Graph, result: Result | None = None) -> str:
    """A flowchart that GitHub and GitLab draw in Markdown."""
    shares = _shares(graph, result)
    numbers = {name: f"f{number}" for number, name in enumerate(_nodes(graph))}
    lines = ["flowchart LR"]
    for name, kind in _nodes(graph).items():
        label = _entities(clean(name)) + (f"<br/>{shares[name].text}" if name in shares else "")
        lines.append(f'  {numbers[name]}["{label}"]' + (f":::{kind}" if kind != "file" else ""))
    lines += [f"  {numbers[one]} --> {numbers[other]}" for one, other in graph.imports]
    lines += ["  classDef entry stroke-width:3px;", "  classDef unreached stroke-dasharray:4 3;"]
    return "\n".join(lines) + "\n"


def html(graph: Graph, result: Result | None = None) -> str:
    """A page with a picture of the imports and a table of the entry points."""
    from d9mlint.report.templating import page

    shares = _shares(graph, result)
    nodes, edges, size = _layout(graph)
    entries = [
        {
            "name": clean(entry["entry"]) + (f":{clean(entry['function'])}" if entry["function"] else ""),
            "why": KINDS.get(entry["kind"], entry["kind"]),
            "reaches": [clean(path) for path in entry["reaches"]],
            "share": shares.get(entry["entry"]),
        }
        for entry in graph.entries
    ]
    return page(
        "graph.html",
        "d9mlint program graph",
        entries=entries,
        unreached=[clean(path) for path in graph.unreached],
        nodes=nodes,
        edges=edges,
        size=size,
        measured=result is not None,
    )


def _nodes(graph: Graph) -> dict[str, str]:
    """Every file with what it is: ``entry``, ``file`` or ``unreached``."""
    entries = {entry["entry"] for entry in graph.entries}
    reached = {path for entry in graph.entries for path in entry["reaches"]}
    kinds = dict.fromkeys(sorted(entries), "entry")
    kinds |= dict.fromkeys(sorted(reached - entries), "file")
    return kinds | dict.fromkeys(graph.unreached, "unreached")


def _shares(graph: Graph, result: Result | None) -> dict[str, Share]:
    """What is followed of each entry point, by its file."""
    if result is None:
        return {}
    return {
        relative_to(one.entry, result.root): Share(one.followed, one.followed + one.not_followed)
        for one in result.coverage
    }


def _quoted(name: str) -> str:
    return json.dumps(clean(name), ensure_ascii=False)


def _entities(text: str) -> str:
    """Text inside of a quoted label of mermaid, which takes entities and no escapes."""
    return "".join(c if c.isalnum() or c in "/._- :" else f"#{ord(c)};" for c in text)


ROW, COLUMN, WIDTH, HEIGHT = 34, 60, 8, 24
"""Pixels between rows and columns of the picture, of a character, and of a box."""


def _layout(graph: Graph) -> tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[int, int]]:
    """Boxes in columns by their distance from an entry point, lines between them, and the size of the picture."""
    depths = _depths(graph)
    kinds = _nodes(graph)
    columns: dict[int, list[str]] = {}
    for name in sorted(depths):
        columns.setdefault(depths[name], []).append(name)
    boxes: dict[str, dict[str, Any]] = {}
    x = 4
    for depth in sorted(columns):
        wide = max(len(clean(name)) for name in columns[depth]) * WIDTH + 16
        for row, name in enumerate(columns[depth]):
            boxes[name] = {"name": clean(name), "kind": kinds[name], "x": x, "y": 4 + row * ROW, "wide": wide}
        x += wide + COLUMN
    lines = []
    for one, other in graph.imports:
        a, b = boxes.get(one), boxes.get(other)
        if a is not None and b is not None:
            # Lines to the right begin on the right of a box and end on the left of one. Others begin and end on
            # the right in one column, and go back from left to right.
            forward, beside = a["x"] < b["x"], a["x"] == b["x"]
            lines.append(
                {
                    "x1": a["x"] + (a["wide"] if forward or beside else 0),
                    "y1": a["y"] + HEIGHT / 2,
                    "x2": b["x"] + (0 if forward else b["wide"]),
                    "y2": b["y"] + HEIGHT / 2,
                    "out": COLUMN / 2 if forward or beside else -COLUMN / 2,
                    "into": -COLUMN / 2 if forward else COLUMN / 2,
                }
            )
    rows = max((len(names) for names in columns.values()), default=0)
    # A line within the last column bends into the space beside it.
    return list(boxes.values()), lines, (x + 8 if boxes else 0, rows * ROW + 8)


def _depths(graph: Graph) -> Mapping[str, int]:
    """The distance of each reached file from the nearest entry point."""
    imported: dict[str, list[str]] = {}
    for one, other in graph.imports:
        imported.setdefault(one, []).append(other)
    level = sorted({entry["entry"] for entry in graph.entries})
    found: dict[str, int] = {}
    depth = 0
    while level:
        found |= dict.fromkeys(level, depth)
        level = sorted({b for a in level for b in imported.get(a, ()) if b not in found})
        depth += 1
    return found
