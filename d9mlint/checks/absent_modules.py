"""Programs that stop at their imports: what they import from a package of the project is not there."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from d9mlint.base.entry_report import EntryReport
from d9mlint.base.findings import Severity
from d9mlint.base.paths import read_limited
from d9mlint.config.gitignore import ignored, read_ignore
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import statements
from d9mlint.project.entry_points import imports_of

if TYPE_CHECKING:
    from d9mlint.project.modules import ModuleFile, Modules

_FINDS = frozenset({"__path__", "extend_path", "meta_path", "modules", "path_hooks"})
"""Names by which a package changes what its submodules are."""
_BUILDS = ("setup.py", "setup.cfg", "pyproject.toml", "meson.build", "CMakeLists.txt", "Makefile")
"""Files that say what a build makes."""
_FETCHES = re.compile(r"^[ \t$>#]*(?:git|cp|mv|ln|wget|curl|unzip|tar|svn)[ \t].*", re.MULTILINE)
"""Commands by which somebody who follows instructions gets files from elsewhere."""
_LONGEST = 1 << 20


def all_as_advice(reports: Iterable[EntryReport], modules: Modules) -> list[EntryReport]:
    """Some reports, of which those of programs that stop at their imports have mere advice."""
    return [_as_advice(one, modules) for one in reports]


def _as_advice(report: EntryReport, modules: Modules) -> EntryReport:
    """The report of a program whose findings are advice if it stops at its imports."""
    if not report.findings:
        return report
    gaps = {(gap.path, gap.start) for gap in report.gaps if gap.kind == "project-import"}
    stops = gaps and any(_stops(modules, *gap) for gap in _reached(report, modules, gaps))
    if not stops and not _imports_renamed(report, modules):
        return report
    findings = [msgspec.structs.replace(one, severity=Severity.ADVICE) for one in report.findings]
    return msgspec.structs.replace(report, findings=findings)


def _reached(
    report: EntryReport, modules: Modules, gaps: set[tuple[str, int]]
) -> Iterator[tuple[ModuleFile, m.Import | m.ImportFrom]]:
    """The statements at some places that the program runs whatever happens: imports at the top level of its file, and of
    those that are imported there, with their files."""
    stack, seen = [report.entry], {report.entry}
    while stack:
        file = modules.by_path.get(stack.pop())
        if file is None or file.notebook or file.facts.problem is not None:
            continue
        body = file.facts.functions[0].body
        imports = [one for one in statements(body) if isinstance(one, (m.Import, m.ImportFrom))]
        top = [one for one in body if isinstance(one, (m.Import, m.ImportFrom))]
        yield from ((file, one) for one in top if (file.path, one.start) in gaps)
        if len(top) == len(imports):
            more = imports_of(modules, file, top_level=True) - seen
            seen |= more
            stack += sorted(more)


def _imports_renamed(report: EntryReport, modules: Modules) -> bool:
    """Whether the file of a program imports at its top level from a module that has another name by now: it is in no
    directory of the project, and a file beside the program whose name contains that of the module defines all that is
    imported from it."""
    file = modules.by_path.get(report.entry)
    if file is None or file.notebook or file.facts.problem is not None:
        return False
    if {"sys", "path"}.issubset(file.facts.words) or not _FINDS.isdisjoint(file.facts.words):
        # It may find modules that are not of the project.
        return False
    return any(
        isinstance(stmt, m.ImportFrom)
        and not stmt.level
        and "." not in stmt.module
        and not modules.is_library(stmt.module)
        and modules.absolute(file, file.directory, stmt.module) is None
        and not modules.named(stmt.module)
        and modules.anywhere_in_other_case(stmt.module) is None
        and _is_beside(modules, file, stmt)
        and not any(_may_be_there(modules.root, at, stmt.module) for at in {file.directory, modules.root})
        for stmt in file.facts.functions[0].body
    )


def _is_beside(modules: Modules, file: ModuleFile, stmt: m.ImportFrom) -> bool:
    """Whether a file in the directory of another one defines what that imports, under a longer name."""
    names = [alias.name for alias in stmt.names]
    wanted = f"_{_in_words(stmt.module)}_"
    return any(
        other.directory == file.directory
        and other is not file
        and other.path.endswith(".py")
        and wanted in f"_{_in_words(posixpath.basename(other.path).removesuffix('.py'))}_"
        and other.defines(names)
        for other in modules.files
    )


def _in_words(name: str) -> str:
    """The words of the name of a file, without numbers."""
    return re.sub(r"[^a-z]+", "_", name.lower()).strip("_")


def _stops(modules: Modules, file: ModuleFile, stmt: m.Import | m.ImportFrom) -> bool:
    """Whether an import raises: a package of the project is there, and the submodule of it is not, in whatever form."""
    if isinstance(stmt, m.Import):
        return any(_is_absent(modules, file, one.name.split("."), 0) for one in stmt.names)
    return _is_absent(modules, file, stmt.module.split("."), stmt.level)


def _is_absent(modules: Modules, file: ModuleFile, parts: list[str], level: int) -> bool:
    base = file.directory
    for _ in range(level - 1):
        base = posixpath.dirname(base)
    if not level:
        package = modules.absolute(file, "", parts[0])
        if package is None or package.file is None or not package.file.is_package:
            return False
        base = posixpath.dirname(package.directory)
    for count, part in enumerate(parts):
        found = modules.at(base, parts[: count + 1])
        if found is not None and found.file is not None and found.file.is_package:
            continue
        above = modules.at(base, parts[:count]) if count else None
        package_file = (
            above.file if above is not None else modules.by_path.get(posixpath.join(base, "__init__.py"))
        )
        return (
            found is None
            and package_file is not None
            and package_file.facts.problem is None
            and _FINDS.isdisjoint(package_file.facts.words)
            and not _may_be_there(modules.root, package_file.directory, part)
        )
    return False


def _may_be_there(root: str, directory: str, name: str) -> bool:
    """Whether something of this name lies in a directory, or is made by a build, or stays out of version control, or is to
    be got from elsewhere."""
    try:
        names = os.listdir(directory)
    except OSError:
        return True
    if any(one.partition(".")[0].lower() == name.lower() for one in names):
        return True
    for one in (f"{name}.py", name):
        if _is_ignored(root, posixpath.join(directory, one), one == name):
            return True
    return any(name in _text(posixpath.join(root, build)) for build in _BUILDS) or _is_fetched(root, name)


def _is_fetched(root: str, name: str) -> bool:
    """Whether a command in the README of a project names something that is to be got from elsewhere."""
    try:
        readmes = [one for one in sorted(os.listdir(root)) if one.lower().startswith("readme")]
    except OSError:
        return False
    commands = (line for one in readmes for line in _FETCHES.findall(_text(posixpath.join(root, one))))
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line) for line in commands)


def _is_ignored(root: str, path: str, is_directory: bool) -> bool:
    """Whether a path, or a directory above it in the project, is one that git ignores."""
    above = [path]
    while posixpath.dirname(above[-1]).startswith(root) and above[-1] != root:
        above.append(posixpath.dirname(above[-1]))
    return ignored(map(read_ignore, reversed(above[1:])), path, is_directory)


def _text(path: str) -> str:
    """What a file holds; nothing where it cannot be read."""
    try:
        return read_limited(path, _LONGEST).decode(errors="replace")
    except (OSError, ValueError):
        return ""
