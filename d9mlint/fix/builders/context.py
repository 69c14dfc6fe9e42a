"""What builders of fixes know: the findings, the files, the versions, and the facts."""

from __future__ import annotations

import ast
import hashlib
import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from d9mlint.base.findings import Applicability, Edit, Finding, Fix
from d9mlint.base.known_fix import FixRead, KnownFix, ReadKind
from d9mlint.base.source import Source
from d9mlint.fix.builders.code import Code, parse
from d9mlint.fix.edits import cell_of
from d9mlint.ir.nodes import Unread

if TYPE_CHECKING:
    from d9mlint.config.targets import Targets
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import OpEntry

MOST_CHARACTERS = 1_000_000
"""Files of so many characters together are kept parsed: a syntax tree takes some hundred times as many bytes."""
FEWEST_FILES = 8
"""So many are kept however large they are: a fix is built from a few files together."""

SAFE = Applicability.SAFE
UNSAFE = Applicability.UNSAFE


class Context:
    """The findings of a run and what they are about. Files are parsed when a fix of theirs is built. What is read
    for a fix is noted, so that the fix can be kept as long as it reads the same.

    ``entries`` maps the names of entry points to files; ``targets`` gives the versions for a file; ``unread`` are the parts
    of files that do not parse.
    """

    def __init__(
        self,
        findings: Sequence[Finding],
        sources: Mapping[str, Source],
        entries: Mapping[str, str],
        targets: Callable[[str], Targets],
        known: Knowledge,
        unread: Mapping[str, Sequence[Unread]],
    ) -> None:
        self.known = known
        self._unread = unread
        self._findings = findings
        self._sources = sources
        self._entries = entries
        self._targets = targets
        # Parsed files, those last that were asked for last, and how many characters they have together.
        self._codes: dict[str, Code | None] = {}
        self._characters = 0
        self._groups: dict[ReadKind, dict[str, list[Finding]]] = {}
        self._containing: dict[tuple[str, str], list[str]] = {}
        self._own_names: set[str] | None = None
        self._answers: dict[tuple[ReadKind, str], str] = {}
        self._read: dict[tuple[ReadKind, str], None] = {}

    def recorded(self, build: Callable[[], Fix | None]) -> KnownFix:
        """A fix that is built now, with what is read for it."""
        self._read = {}
        fix = build()
        return KnownFix(
            tuple(FixRead(kind, name, self._answer(kind, name)) for kind, name in self._read), fix
        )

    def still_true(self, known: KnownFix) -> bool:
        """Whether all that was read for a fix reads the same now."""
        return all(self._answer(read.kind, read.name) == read.answer for read in known.reads)

    def _answer(self, kind: ReadKind, name: str) -> str:
        """A digest of what is read."""
        found = self._answers.get((kind, name))
        if found is None:
            if kind == "file":
                found = self._sources[name].digest if name in self._sources else ""
            elif kind == "others":
                found = str(self._others_contain(name))
            elif kind == "own":
                found = str(self._is_own(name))
            elif kind == "version":
                found = str(self._matches(name))
            elif kind == "versions":
                found = str(all(self._matches("\0".join((path, name))) for path in self._sources))
            else:
                found = digest(self._group(kind).get(name, []))
            self._answers[kind, name] = found
        return found

    def _group(self, kind: ReadKind) -> dict[str, list[Finding]]:
        groups = self._groups.get(kind)
        if groups is None:
            groups = self._groups[kind] = {}
            for one in self._findings:
                groups.setdefault(self.entry(one) if kind == "entry" else one.path, []).append(one)
        return groups

    def of_entry(self, path: str) -> list[Finding]:
        """The findings that were made in runs of the entry points in a file."""
        self._read["entry", path] = None
        return self._group("entry").get(path, [])

    def of_file(self, path: str) -> list[Finding]:
        """The findings in a file."""
        self._read["place", path] = None
        return self._group("place").get(path, [])

    def others_contain(self, path: str, text: str, unless: str = "") -> bool:
        """Whether a file other than one contains a text, and not another one."""
        name = "\0".join((path, text, unless))
        self._read["others", name] = None
        return self._others_contain(name)

    def _others_contain(self, name: str) -> bool:
        path, text, unless = name.split("\0")
        found = self._containing.get((text, unless))
        if found is None:
            found = self._containing[text, unless] = [
                other
                for other, source in self._sources.items()
                if source.problem is None
                and source.contains(text)
                and not (unless and source.contains(unless))
            ]
        return any(other != path for other in found)

    def is_own(self, module: str) -> bool:
        """Whether a module of that top-level name may be one of the project: a file or directory has its name."""
        self._read["own", module] = None
        return self._is_own(module)

    def _is_own(self, module: str) -> bool:
        if self._own_names is None:
            top = os.path.commonpath([os.path.dirname(path) for path in self._sources])
            self._own_names = {
                part.removesuffix(".py")
                for path in self._sources
                for part in path[len(top) :].split("/")
                if part
            }
        return module in self._own_names

    def code(self, path: str) -> Code | None:
        """A file as code; None where it cannot be parsed."""
        self._read["file", path] = None
        if path in self._codes:
            code = self._codes[path] = self._codes.pop(path)
            return code
        source = self._sources.get(path)
        code = None if source is None else self._parsed(path, source)
        self._codes[path] = code
        self._characters += len(code.source.text) if code is not None else 0
        # Those that were asked for last are asked for again.
        while self._characters > MOST_CHARACTERS and len(self._codes) > FEWEST_FILES:
            oldest = self._codes.pop(next(iter(self._codes)))
            self._characters -= len(oldest.source.text) if oldest is not None else 0
        return code

    def _parsed(self, path: str, source: Source) -> Code | None:
        def exported(stmt: ast.ImportFrom) -> Mapping[str, str]:
            return self._names_of(path, stmt, {path})

        def goes_first(name: str) -> bool:
            return self.known.role(name, "goes-first") is not None

        return parse(source, self.is_own, self._unread.get(path, ()), exported, goes_first)

    def _names_of(self, path: str, stmt: ast.ImportFrom, seen: set[str]) -> dict[str, str]:
        """What the names stand for that ``from module import *`` in a file binds: the import that the module has them
        from, or nothing."""
        folder = os.path.dirname(path)
        for _ in range(stmt.level - 1):
            folder = os.path.dirname(folder)
        parts = (stmt.module or "").split(".") if stmt.module else []
        top = os.path.commonpath([os.path.dirname(one) for one in self._sources])
        while True:
            base = "/".join((folder, *parts))
            found = next((p for p in (f"{base}.py", f"{base}/__init__.py") if self.code(p)), "")
            # An absolute name may be one of a directory above.
            if found or stmt.level or len(folder) <= len(top):
                break
            folder = os.path.dirname(folder)
        code = self.code(found) if found else None
        if code is None or found in seen:
            return {}
        names: dict[str, str] = {}
        for other in code.tree.body:
            if isinstance(other, ast.ImportFrom) and other.names[0].name == "*":
                names.update(self._names_of(found, other, seen | {found}))
        imported = code.imported()
        return {**names, **{name: imported.get(name, names.get(name, "")) for name in code.public()}}

    def is_readable(self, path: str, edits: Sequence[Edit]) -> bool:
        """Whether a file can be parsed wherever edits change it."""
        unread = self._unread.get(path)
        if not unread:
            return True
        self._read["file", path] = None
        cells = self._sources[path].cells or ()
        if not cells:
            return False
        broken = {cell for cell in cells if any(cell.start <= one.start < cell.end for one in unread)}
        return all(cell_of(cells, edit, self._sources[path].raw) not in broken for edit in edits)

    def op(self, finding: Finding) -> OpEntry | None:
        """The knowledge entry of the op that a finding is about."""
        return self.known.op(finding.op)

    def own(self, finding: Finding) -> Code | None:
        """The file that a finding is in."""
        return self.code(finding.path)

    def call(self, finding: Finding) -> tuple[Code, ast.Call] | None:
        """The file that a finding is in and the call that it is about; None where it is about no call."""
        code = self.own(finding)
        call = code.call(finding.start, finding.end) if code is not None else None
        return None if code is None or call is None else (code, call)

    def entry(self, finding: Finding) -> str:
        """The file of the entry point whose run a finding was made in; empty where there is none."""
        return self._entries.get(finding.entry_point or "", "")

    def entry_offset(self, finding: Finding) -> int | None:
        """Where the entry point's own file leads to what a finding is about: in front of a function that a server calls
        again and again, where its program starts to serve."""
        offset = self._leads_at(finding)
        code = self.code(self.entry(finding))
        index = code.top_at(offset) if code is not None and offset is not None else None
        if code is None or index is None:
            return offset
        stmt = code.tree.body[index]
        return code.start(stmt) if self._is_handler(code, stmt) else offset

    def _is_handler(self, code: Code, stmt: ast.stmt) -> bool:
        """Whether a statement defines a function and registers it with a server: ``@app.get("/")``."""
        if not isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        made = {
            target.id: one.value.func
            for one in code.tree.body
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        for decorator in stmt.decorator_list:
            func = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = code.qualified(func)
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in made:
                name = f"{code.qualified(made[func.value.id])}.{func.attr}"
            known = self.known.canonical(name) if name else ""
            if any(self.known.role(known, role) is not None for role in ("registers", "registers-start")):
                return True
        return False

    def _leads_at(self, finding: Finding) -> int | None:
        entry, leading = self.entry(finding), [step for step in finding.flow if not step.beside]
        own, code = self.own(finding), self.code(entry)
        if own is not None and own.runs_at_import(finding.start, finding.end):
            # A default argument is reported with the call that uses it, and drawn where it is defined.
            if finding.path == entry:
                return finding.start
            if code is None or not leading or not code.is_import_at(leading[0].start):
                return None
        if leading:
            first = leading[0]
            if first.path == entry:
                return first.start
            # What was made in another file is used by statements of the entry point's own module.
            made_in = self.code(first.path)
            if code is None or made_in is None or made_in.runs_at_import(first.start, first.end):
                return None
            return code.first_action()
        return finding.start if finding.path == entry else None

    def matches(self, finding: Finding, library: str, spec: str) -> bool:
        """Whether the version that a finding was judged by is in a range."""
        name = "\0".join((self.entry(finding) or finding.path, library, spec))
        self._read["version", name] = None
        return self._matches(name)

    def may_match(self, finding: Finding, library: str, spec: str) -> bool:
        """Whether that version is in a range, or another one that the project admits."""
        name = "\0".join((self.entry(finding) or finding.path, library, spec, "admitted"))
        self._read["version", name] = None
        return self._matches(name)

    def versions_differ(self, finding: Finding, library: str) -> bool:
        """Whether other files of the project are judged by another version than a finding."""
        version = self._targets(self.entry(finding) or finding.path).version(library).version
        if not version:
            return False
        name = "\0".join((library, f"=={version}"))
        self._read["versions", name] = None
        return self._answer("versions", name) == "False"

    def _matches(self, name: str) -> bool:
        path, library, spec, *others = name.split("\0")
        targets = self._targets(path)
        return targets.may_match(library, spec) if others else targets.matches(library, spec)


def digest(findings: Finding | Sequence[Finding]) -> str:
    """A digest of all that is in findings. Names of files need not be UTF-8."""
    found = hashlib.blake2b(digest_size=16)
    # One by one: in a large project thousands have no entry point, and their text together would take most memory.
    for one in [findings] if isinstance(findings, Finding) else findings:
        found.update(repr(one).encode("utf-8", "surrogatepass"))
        found.update(b"\0")
    return found.hexdigest()


def made(
    message: str, edits: Sequence[Edit] | None, applicability: Applicability = UNSAFE, path: str = ""
) -> Fix | None:
    """A fix of edits; None where there are none."""
    return Fix(applicability, message, tuple(edits), path) if edits else None
