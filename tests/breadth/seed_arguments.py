"""What libraries draw and the knowledge says nothing of. Run by hand, on wheels or archives that need not be installed:

    python tests/breadth/seed_arguments.py WHEEL...

Nothing of them is executed. One line for each public function and class that takes a seed or generator whose default is
None and of which no entry in ``rules/knowledge`` speaks; with ``--global`` also those whose code calls a global generator.
Names of tests, examples and private modules' private members are left out. Whether such a name matters must be read in
its code: classes that others are derived from, and helpers that nobody calls, are listed too.
"""

from __future__ import annotations

import argparse
import ast
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from d9mlint.knowledge import Knowledge
from d9mlint.knowledge.loader import load_compiled

SEEDS = re.compile(r"(?:\w+_)?(?:seed|random_state)|rng|generator|np_random|rstate|prng")
GLOBAL = re.compile(
    r"\b(?:np|numpy)\.random\.(?!RandomState|default_rng|Generator|SeedSequence|seed|get_state|set_state)\w+\("
    r"|\brandom\.(?:random|randint|choices?|shuffle|sample|uniform|gauss|randrange)\("
    r"|\b(?:np|numpy)\.random\.(?:RandomState|default_rng)\(\s*\)"
    r"|\btorch\.(?:rand|randn|randint|randperm|normal|multinomial|bernoulli)(?:_like)?\("
)
PASSED_OVER = re.compile(
    r"(?:^|/)(?:tests?|testing|conftest|examples?|benchmarks?|_?vendor(?:ed)?)(?:/|_|\.|$)"
)


def sources(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The Python files of a wheel or source archive, by their paths in the package."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield name, wheel.read(name)
        return
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            file = packed.extractfile(member) if member.name.endswith(".py") else None
            if file is not None:
                yield member.name.partition("/")[2].removeprefix("src/"), file.read()


def seed_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters for a seed or generator that are None unless given."""
    args = function.args
    ordered = args.posonlyargs + args.args
    pairs = list(zip(reversed(ordered), reversed(args.defaults), strict=False))
    pairs += [
        (arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default
    ]
    return [
        arg.arg
        for arg, default in pairs
        if SEEDS.fullmatch(arg.arg) and isinstance(default, ast.Constant) and default.value is None
    ]


def drawing(archive: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Public names of an archive with their seed arguments and the global generators that their code calls."""
    for path, text in sources(archive):
        if PASSED_OVER.search(path):
            continue
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for node in tree.body:
            if (
                not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                or node.name[0] == "_"
            ):
                continue
            made = node.body if isinstance(node, ast.ClassDef) else [node]
            seeds = [
                seed
                for function in made
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
                and (function is node or function.name == "__init__")
                for seed in seed_arguments(function)
            ]
            calls = sorted({found.group().rstrip("( ") for found in GLOBAL.finditer(ast.unparse(node))})
            if seeds or calls:
                yield f"{module}.{node.name}", seeds, calls


def names_of(full: str) -> Iterator[str]:
    """The names by which a program may import it: any package around its module may give it."""
    *modules, last = full.split(".")
    public = [part for part in modules if part[0] != "_"]
    for parts in (modules, public):
        for count in range(len(parts), 0, -1):
            yield ".".join([*parts[:count], last])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archives", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument(
        "--global", dest="all", action="store_true", help="also what calls a global generator"
    )
    options = parser.parse_args()
    known = Knowledge(load_compiled())
    for archive in options.archives:
        found = list(drawing(archive))
        unknown = [one for one in found if not any(known.rng(name) for name in names_of(one[0]))]
        shown = [one for one in unknown if one[1] or options.all]
        print(f"{archive.name}: {len(found)} draw or take a seed, {len(shown)} of which nothing is known")
        for name, seeds, calls in shown:
            print(f"    {name}({', '.join(f'{seed}=None' for seed in seeds)}) {' '.join(calls)}".rstrip())


if __name__ == "__main__":
    main()
