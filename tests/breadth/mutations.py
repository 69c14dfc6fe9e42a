"""Breaks what programs do right, one place at a time, and counts the breaks that are reported. Run by hand:

    python tests/breadth/mutations.py [--limit N] [--only WORD] [--equivalent FILE] TREE...

Each TREE is a program or project of some other author; it is copied, never changed. A mutant is one change that
makes runs differ: a seed deleted, moved behind the first draw or taken from the clock, a listing no longer sorted, a
split or generator without its seed, ``set_epoch`` or ``worker_init_fn`` gone, a saved RNG state left out, a
deterministic mode switched off, an op that races in a ``forward`` that trains. It is reported when a finding of one of
the expected rules is there that was not there before. Changes that change nothing are tried too: an import under
another name, a module moved into another, a function moved into a class, a function that nobody calls, a script that
has nothing to do with the others. After these the findings have to be the same.

A line for each mutant that is not reported, and for each equivalent change that changes findings; then the counts.
A mutant whose rule reports the tree already is named and not counted.
Mutants without effect for a reason that the script cannot see are named in FILE, one ``TREE-NAME PATH:LINE OPERATOR`` a
line, with the reason after ``#``, as in ``mutations_equivalent.txt``; they are not counted. The exit status is 1 when
fewer than 95 % are reported or an equivalent change changed something.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

SEEDERS = {
    "manual_seed": "DET101 DET108 DET201 DET202 DET109 DET701",
    "seed_everything": "DET101 DET102 DET103 DET108 DET109 DET202",
    "set_random_seed": "DET104 DET103 DET108 DET207 DET109",
    "set_seed": "DET101 DET102 DET103 DET104 DET108 DET109 DET202 DET207",
    "seed": "DET102 DET103 DET108 DET109 DET111 DET105 DET106",
}
SEED_ARGUMENTS = {"random_state", "seed"}
LISTINGS = {"listdir", "glob", "iglob", "rglob", "iterdir", "scandir", "walk", "set"}
GENERATORS = {"default_rng", "RandomState", "Random", "SeedSequence", "PCG64"}
MODES = {"use_deterministic_algorithms", "enable_op_determinism"}
MODE_FLAGS = {"deterministic", "benchmark"}
RACE = "{0} = {0}.index_add(0, torch.zeros({0}.shape[0], dtype=torch.long, device={0}.device), {0})"


class Mutant(NamedTuple):
    """A change: its operator, the file and line, the new text of the file, and the rules that should report it."""

    operator: str
    path: str
    line: int
    text: str
    codes: frozenset[str]
    main_code: str


class Edit(NamedTuple):
    """A span of the source, in characters, and what stands there instead."""

    start: int
    end: int
    text: str


class Source:
    """A parsed file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def at(self, line: int, column: int) -> int:
        """The character at a row and a column of bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node stands."""
        located = node
        assert isinstance(located, (ast.expr, ast.stmt))
        assert located.end_lineno is not None and located.end_col_offset is not None
        return (
            self.at(located.lineno, located.col_offset),
            self.at(located.end_lineno, located.end_col_offset),
        )

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def with_edits(self, *edits: Edit) -> str:
        """The text with some spans replaced."""
        text = self.text
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    def without_keyword(self, call: ast.Call, keyword: ast.keyword) -> str:
        """The text without an argument of a call."""
        place = call.keywords.index(keyword)
        start = self.at(keyword.lineno, keyword.col_offset)
        _, end = self.span(keyword.value)
        rest = self.text[end:]
        after = len(rest) - len(rest.lstrip())
        if rest.lstrip().startswith(","):
            return self.with_edits(Edit(start, end + after + 1, ""))
        before = self.text[:start].rstrip()
        if (place or call.args) and before.endswith(","):
            start = len(before) - 1
        return self.with_edits(Edit(start, end, ""))


def called(node: ast.AST) -> str:
    """The last part of the name that is called."""
    if not isinstance(node, ast.Call):
        return ""
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def head(node: ast.Call) -> str:
    """What stands before the last dot of the name that is called."""
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def programs(sources: list[Source]) -> dict[str, str]:
    """For each file the text of all files that imports connect it with."""
    group = {source.path: source.path for source in sources}

    def first(path: str) -> str:
        while group[path] != path:
            path = group[path]
        return path

    dotted = {source.path: "." + ".".join(Path(source.path).with_suffix("").parts) for source in sources}
    for source in sources:
        for name in _imported(source.tree):
            for path, module in dotted.items():
                if f"{module.removesuffix('.__init__')}".endswith(f".{name}"):
                    group[first(path)] = first(source.path)
    texts: dict[str, list[str]] = {}
    for source in sources:
        texts.setdefault(first(source.path), []).append(source.text)
    return {source.path: "\n".join(texts[first(source.path)]) for source in sources}


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            yield from (f"{node.module}.{one.name}" if node.module else one.name for one in node.names)


def defaults(sources: list[Source]) -> set[tuple[str, str]]:
    """Functions and classes with their parameters that have a default other than None."""
    found = set()
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                owner = source.parents.get(node)
                made = node.name == "__init__" and isinstance(owner, ast.ClassDef)
                name = owner.name if made and isinstance(owner, ast.ClassDef) else node.name
                arguments = node.args
                last = arguments.args[len(arguments.args) - len(arguments.defaults) :]
                given = [
                    *zip(last, arguments.defaults, strict=True),
                    *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
                ]
                for parameter, value in given:
                    if isinstance(value, ast.Constant) and value.value is not None:
                        found.add((name, parameter.arg))
    return found


def mutants(source: Source, everything: str, fixed: set[tuple[str, str]]) -> Iterator[Mutant]:
    """The breaks of a file; ``everything`` is the text of all files of its programs, ``fixed`` are their defaults."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _statement(source, node, node.value, everything)
        if isinstance(node, ast.Call):
            yield from _call(source, node, fixed)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            flag = node.targets[0].attr
            known = isinstance(node.value, ast.Constant)
            if flag in MODE_FLAGS and "cudnn" in ast.unparse(node.targets[0]) and known:
                value = node.value.value  # type: ignore[attr-defined]
                if value is (flag == "deterministic"):
                    text = source.with_edits(Edit(*source.span(node.value), str(not value)))
                    codes = "DET301" if flag == "benchmark" else "DET303 DET302"
                    yield _mutant(f"cudnn.{flag}", source, node, text, codes)
        if isinstance(node, ast.Dict):
            yield from _states(source, node)
        if isinstance(node, ast.ClassDef):
            yield from _race(source, node)


def _mutant(operator: str, source: Source, node: ast.AST, text: str, codes: str) -> Mutant:
    return Mutant(
        operator, source.path, getattr(node, "lineno", 0), text, frozenset(codes.split()), codes.split()[0]
    )


def _draws(rng: str, everything: str) -> bool:
    """Whether a program draws from what a call seeds, as far as its text shows."""
    if rng == "random":
        names = ("random()", "randint(", "choice(", "shuffle(", "sample(", "uniform(", "choices(", "gauss(")
        return any(
            f"random.{name}" in everything.replace("np.random", "np").replace("numpy.random", "np")
            for name in names
        )
    if rng in ("np.random", "numpy.random"):
        return (
            everything.count(f"{rng}.") > everything.count(f"{rng}.seed") or "train_test_split" in everything
        )
    return True


def _statement(source: Source, stmt: ast.Expr, call: ast.Call, everything: str) -> Iterator[Mutant]:
    name = called(call)
    gone = source.with_edits(Edit(*source.span(stmt), "pass"))
    if name in SEEDERS and (call.args or call.keywords):
        rng = head(call)
        body = next((b for b in _bodies(source.parents.get(stmt)) if stmt in b), [])
        twin = any(
            other is not stmt and isinstance(other, ast.Expr) and called(other.value) == "manual_seed"
            for other in body
        )
        codes = SEEDERS[name]
        if name == "seed" and rng == "random":
            codes = f"DET103 {codes}"
        elif name == "set_seed" and "torch" not in everything:
            codes = f"DET104 {codes}"
        redundant = ".cuda" in rng and (twin or "manual_seed" in everything)
        if (
            redundant
            or not _draws(rng, everything)
            or (name == "seed" and rng.endswith(("space", "env", "self")))
        ):
            return
        yield _mutant("seed deleted", source, stmt, gone, codes)
        first = call.args[0] if call.args else call.keywords[0].value
        options = isinstance(first, ast.Name) and f"{first.id}." in source.text
        if not isinstance(first, ast.Starred) and not options:
            clock = source.with_edits(Edit(*source.span(first), 'int(__import__("time").time())'))
            yield _mutant("seed from the clock", source, stmt, clock, f"DET107 {codes}")
        if body and body[-1] is not stmt and isinstance(source.parents.get(stmt), ast.Module):
            start, end = source.span(stmt)
            last = source.span(body[-1])[1]
            moved = (
                source.text[:start]
                + "pass"
                + source.text[end:last]
                + "\n"
                + source.source(stmt)
                + source.text[last:]
            )
            yield _mutant("seed moved to the end", source, stmt, moved, codes)
    elif name == "set_epoch":
        yield _mutant("set_epoch removed", source, stmt, gone, "DET203")
    elif name in MODES:
        yield _mutant("mode not switched on", source, stmt, gone, "DET302 DET306 DET401 DET403 DET404 DET405")


def _bodies(node: ast.AST | None) -> list[list[ast.stmt]]:
    return [getattr(node, name) for name in ("body", "orelse", "finalbody") if getattr(node, name, None)]


def _call(source: Source, call: ast.Call, fixed: set[tuple[str, str]]) -> Iterator[Mutant]:
    name = called(call)
    if name == "sorted" and call.args and any(called(one) in LISTINGS for one in ast.walk(call.args[0])):
        inner = call.args[0]
        text = source.with_edits(Edit(*source.span(call), f"list({source.source(inner)})"))
        yield _mutant("listing not sorted", source, call, text, "DET209 DET210")
    if name in GENERATORS and len(call.args) == 1 and not call.keywords:
        text = source.with_edits(Edit(*source.span(call.args[0]), ""))
        yield _mutant("generator without seed", source, call, text, "DET106")
    for keyword in call.keywords:
        if (name, keyword.arg) in fixed:
            # The project's own function has a fixed seed by default.
            continue
        if keyword.arg in SEED_ARGUMENTS and name not in SEEDERS and not isinstance(keyword.value, ast.Name):
            text = source.without_keyword(call, keyword)
            yield _mutant(
                f"{keyword.arg}= removed",
                source,
                call,
                text,
                "DET109 DET106 DET207 DET110 DET104 DET701 DET102 DET111",
            )
        elif keyword.arg == "worker_init_fn":
            yield _mutant(
                "worker_init_fn removed", source, call, source.without_keyword(call, keyword), "DET201"
            )
        elif (
            keyword.arg == "deterministic"
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value is True
        ):
            text = source.without_keyword(call, keyword)
            yield _mutant("deterministic=True removed", source, call, text, "DET302 DET312 DET401")


def _states(source: Source, node: ast.Dict) -> Iterator[Mutant]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None and called(value) in (
            "get_rng_state",
            "get_rng_state_all",
            "getstate",
            "get_state",
        ):
            start, end = source.span(key)[0], source.span(value)[1]
            rest = source.text[end:]
            comma = len(rest) - len(rest.lstrip()) + 1 if rest.lstrip().startswith(",") else 0
            yield _mutant(
                "RNG state not saved", source, key, source.with_edits(Edit(start, end + comma, "")), "DET601"
            )


def _race(source: Source, node: ast.ClassDef) -> Iterator[Mutant]:
    if not any(ast.unparse(base) in ("nn.Module", "torch.nn.Module", "Module") for base in node.bases):
        return
    imports = any(
        isinstance(one, ast.Import) and any(a.name == "torch" and a.asname is None for a in one.names)
        for one in ast.walk(source.tree)
    )
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "forward" and imports:
            names = [arg.arg for arg in method.args.args[1:2]]
            first = next((one for one in method.body if not _is_docstring(one)), None)
            if names and first is not None:
                start = source.span(first)[0]
                indent = source.lines[first.lineno - 1].encode()[: first.col_offset].decode()
                if not indent.strip():
                    text = source.with_edits(Edit(start, start, f"{RACE.format(names[0])}\n{indent}"))
                    yield _mutant("op that races", source, first, text, "DET401 DET402")


def _is_docstring(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


# ------------------------------------------------------------------------------ changes of no effect


def equivalents(source: Source, package: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Changes without effect: a name, and the files with their new texts."""
    path = Path(source.path)
    yield (
        "dead function",
        {source.path: source.text.rstrip("\n") + "\n\n\ndef _never_called(x):\n    return x\n"},
    )
    alias = _alias(source)
    if alias is not None:
        yield "import under another name", {source.path: alias}
    method = _method(source)
    if method is not None:
        yield "function moved into a class", {source.path: method}
    guarded = "__main__" in source.text or not source.tree.body
    names = [n.name for n in source.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    plain = all(
        isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Expr))
        for n in source.tree.body
    )
    if names and plain and not guarded and path.name != "__init__.py":
        inner = path.with_name(f"moved_{path.name}")
        dot = "." if package else ""
        front = f"from {dot}{inner.stem} import {', '.join(names)}\n"
        yield "module moved into another", {source.path: front, str(inner): source.text}


def _alias(source: Source) -> str | None:
    for stmt in source.tree.body:
        if isinstance(stmt, ast.Import) and len(stmt.names) == 1 and "." not in stmt.names[0].name:
            name = stmt.names[0].asname or stmt.names[0].name
            stored = any(
                (isinstance(one, ast.arg) and one.arg == name)
                or (isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load))
                or (
                    isinstance(one, ast.alias)
                    and one is not stmt.names[0]
                    and (one.asname or one.name).split(".")[0] == name
                )
                or (isinstance(one, (ast.Global, ast.Nonlocal)) and name in one.names)
                for one in ast.walk(source.tree)
            )
            uses = [one for one in ast.walk(source.tree) if isinstance(one, ast.Name) and one.id == name]
            if (
                uses
                and not stored
                and "import *" not in source.text
                and not any(isinstance(one, ast.JoinedStr) for one in ast.walk(source.tree))
            ):
                edits = [Edit(*source.span(one), f"other_{name}") for one in uses]
                whole = Edit(*source.span(stmt), f"import {stmt.names[0].name} as other_{name}")
                return source.with_edits(whole, *edits)
    return None


def _method(source: Source) -> str | None:
    for stmt in source.tree.body:
        if isinstance(stmt, ast.FunctionDef) and not stmt.decorator_list and stmt.name != "main":
            start, end = source.span(stmt)
            if "'''" in source.text[start:end] or '"""' in source.text[start:end]:
                continue
            lines = source.text[start:end].splitlines(keepends=True)
            tab = "\t" if any(line.startswith("\t") for line in lines) else "    "
            body = "".join(tab + line if line.strip() else line for line in lines)
            holder = f"_Holder_{stmt.name}"
            made = f"class {holder}:\n{tab}@staticmethod\n{body}\n\n\n{stmt.name} = {holder}.{stmt.name}"
            return source.text[:start] + made + source.text[end:]
    return None


# --------------------------------------------------------------------------------------------- runs


class Tree:
    """A copy of a tree, linted with one file changed at a time."""

    def __init__(self, origin: Path, work: Path) -> None:
        self.name = origin.name
        self.root = work / origin.name
        self.cache = work / f"cache-{origin.name}"
        self.root.mkdir()
        keep = (".py", ".ipynb", ".toml", ".cfg", ".txt", ".yaml", ".yml", ".json")
        for path in sorted(origin.rglob("*")):
            if (
                path.is_file()
                and path.suffix in keep
                and not path.is_symlink()
                and path.stat().st_size < 500_000
            ):
                target = self.root / path.relative_to(origin)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)

    def sources(self) -> list[Source]:
        """Its files that can be parsed."""
        found = []
        for path in sorted(self.root.rglob("*.py")):
            try:
                found.append(Source(str(path.relative_to(self.root)), path.read_text(encoding="utf-8")))
            except (SyntaxError, ValueError):
                continue
        return found

    def lint(self, texts: dict[str, str]) -> Counter[tuple[str, str, int]]:
        """Path, code and offset of all findings with some files changed."""
        kept = {name: _read(self.root / name) for name in texts}
        for name, text in texts.items():
            (self.root / name).write_text(text, encoding="utf-8")
        try:
            overrides = {"jobs": 1, "cache-dir": str(self.cache)}
            result = check([str(self.root)], load_settings(str(self.root), overrides=overrides))
        finally:
            for name, old in kept.items():
                if old is None:
                    (self.root / name).unlink()
                else:
                    (self.root / name).write_text(old, encoding="utf-8")
        root = self.root.resolve()
        return Counter(
            (str(Path(f.path).relative_to(root)), f.code, f.start)
            for f in (item.finding for item in result.items)
        )


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def by_code(found: Counter[tuple[str, str, int]]) -> Counter[str]:
    """How many findings each rule has."""
    return Counter(code for _, code, _ in found.elements())


def by_file(found: Counter[tuple[str, str, int]]) -> Counter[tuple[str, str]]:
    """How many findings each rule has in each file; a module that was moved counts as itself."""
    return Counter((path.replace("moved_", ""), code) for path, code, _ in found.elements())


def is_reported(
    mutant: Mutant, before: Counter[tuple[str, str, int]], after: Counter[tuple[str, str, int]]
) -> bool:
    """Whether a finding of an expected rule is new: there are more of them, or one stands at another place."""
    old, new = by_code(before), by_code(after)
    if any(new[code] > old[code] for code in mutant.codes):
        return True
    seen = {(path, code) for path, code, _ in before}
    return any(code in mutant.codes and (path, code) not in seen for path, code, _ in after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=12, help="mutants and equivalent changes of one tree")
    parser.add_argument("--only", default="", help="operators with this word in their names")
    parser.add_argument("--equivalent", type=Path, help="mutants that have no effect, one a line")
    args = parser.parse_args()
    known = args.equivalent.read_text().splitlines() if args.equivalent else []
    harmless = {line.partition("#")[0].strip() for line in known}
    tried: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    same = changed = 0
    with tempfile.TemporaryDirectory() as work:
        for origin in args.trees:
            tree = Tree(origin.resolve(), Path(work))
            sources = tree.sources()
            texts, known_defaults = programs(sources), defaults(sources)
            before = tree.lint({})
            chosen = [
                one
                for source in sources
                for one in mutants(source, texts[source.path], known_defaults)
                if args.only in one.operator
            ]
            changes = [] if args.only else _changes(tree, sources)
            rng = random.Random(0)
            rng.shuffle(chosen)
            rng.shuffle(changes)
            for mutant in chosen[: args.limit]:
                name = f"{tree.name} {mutant.path}:{mutant.line} {mutant.operator}"
                try:
                    ast.parse(mutant.text)
                except SyntaxError:
                    continue
                if name in harmless:
                    continue
                if is_reported(mutant, before, tree.lint({mutant.path: mutant.text})):
                    tried[mutant.operator] += 1
                    caught[mutant.operator] += 1
                elif mutant.main_code in by_code(before):
                    # What it breaks is broken somewhere else in the tree already.
                    print(f"reported before: {name}", flush=True)
                else:
                    tried[mutant.operator] += 1
                    print(f"not reported: {name}", flush=True)
            for what, texts in changes[: args.limit]:
                after = by_file(tree.lint(texts))
                same += 1
                if after != by_file(before):
                    changed += 1
                    new, gone = after - by_file(before), by_file(before) - after
                    print(
                        f"changed: {tree.name} {sorted(texts)[0]} {what}: new {dict(new)} gone {dict(gone)}",
                        flush=True,
                    )
    total, found = sum(tried.values()), sum(caught.values())
    for operator in sorted(tried):
        print(f"{operator}: {caught[operator]} of {tried[operator]}")
    print(f"{found} of {total} mutants reported; {changed} of {same} equivalent changes changed findings")
    return int(changed > 0 or found < 0.95 * total)


def _takes_all(tree: ast.Module, stem: str) -> bool:
    """Whether a file imports all names of a module by that name."""
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").rpartition(".")[2] == stem
        and any(alias.name == "*" for alias in node.names)
        for node in ast.walk(tree)
    )


def _changes(tree: Tree, sources: list[Source]) -> list[tuple[str, dict[str, str]]]:
    found = [
        ("unrelated script", {"unrelated_script.py": 'if __name__ == "__main__":\n    print("hello")\n'})
    ]
    for source in sources:
        names = Path(source.path).with_suffix("").parts
        inside = len(names) > 1 and any(".".join(names) in _imported(one.tree) for one in sources)
        package = inside or (tree.root / source.path).with_name("__init__.py").exists()
        stem = names[-1]
        # From where a file gets everything, it gets what that imports, too; as a module that is none of a package, a
        # file has no neighbor by a dot.
        whole = any(_takes_all(one.tree, stem) for one in sources)
        plain = any(stem in _imported(one.tree) for one in sources) and len(names) > 1
        for what, texts in equivalents(source, package):
            if len(texts) > 1 and (whole or (package and plain)):
                continue
            try:
                for text in texts.values():
                    ast.parse(text)
            except SyntaxError:
                continue
            found.append((what, texts))
    return found


if __name__ == "__main__":
    sys.exit(main())
