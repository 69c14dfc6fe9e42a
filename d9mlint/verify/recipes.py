"""Recipes of ``rules/recipes``: strictly typed; a mistake is reported with its file and line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from d9mlint.base.known_calls import CallCondition
from d9mlint.evidence.model import Given
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import rules_directory

SCHEMA = 1


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What documentation or source code say of an op, to be held against what is measured.

    ``cuda`` and ``cpu``: ``nondet``, ``det``, ``cond`` (by shape, dtype or library version), ``autotune``
    (between processes), ``nondet_in_process``, ``det_in_practice`` (listed, though its bits agree).
    """

    cuda: str = "cond"
    cuda_mode: str = ""
    cpu: str = "det"


class Race(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why the order of work shows in the result, as arithmetic that a test evaluates at full size.

    ``kind``: ``add`` (values added at one address in arrival order), ``store`` (the last of several writers
    wins), ``scan`` (partial results combined in arrival order), ``memory`` (uninitialized memory is read),
    ``rng``, ``clock`` (what is chosen by timing), ``threads``, ``library`` (the kernel is chosen inside of a closed
    library; ``reason`` names it). ``onto``: what values are added to. ``addends``: an expression that gives the
    values that meet at each address, see ``torch_addresses`` and ``tensorflow_addresses``. ``kernel``: conditions,
    over the inputs ``i`` and the number of multiprocessors ``SM``, on which the racy kernel is taken.
    """

    kind: Literal["add", "store", "scan", "memory", "rng", "clock", "threads", "library"]
    onto: Literal["zeros", "values"] = "zeros"
    addends: str = ""
    kernel: tuple[str, ...] = ()
    reason: str = ""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to build the inputs of an op (``make``), run it (``fn``), and which inputs get gradients.

    ``ops``: ids of the knowledge entries that it stands for; ``settings``: subjects of findings about
    settings that it stands for. ``process``: whether runs share a process, each have their own, or both are
    tried. ``needs``: ``compile`` (a compiler on the machine), ``compiler-cache`` (an empty cache for each
    run), ``cuda`` (a GPU: elsewhere something else would be run), ``ranks`` (several processes under
    torchrun). ``race``: the arithmetic of what it provokes. ``exact``: it stands for no other API than its
    own, whatever else its ``ops`` name. ``form``: conditions on the arguments of the calls
    that it stands for. ``call``: for the APIs of which it can run a given call, its names of inputs and options
    with the parameters that give them, as keyword and position (a method's receiver is position 0), or as a position
    where the keyword is the same word; ``use.input`` is a parameter of the module or layer that the API makes.
    ``make`` asks for them by ``known(name, value, default)``, ``options(name=value)`` (keyword arguments, without
    those that the call leaves out or that are None), ``shape(name, *sizes)``, ``index(name, high, *sizes)`` and
    ``optional(name)`` (a tensor that is None where none is given).
    ``control``: the answer that it must give in every session; ``race`` is a race known to be seen on the devices
    named in ``control_on``.
    """

    id: str
    api: str
    phase: Literal["forward", "backward", "forward+backward"]
    make: str
    fn: str
    ops: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    grad: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32",)
    process: Literal["same", "fresh", "both"] = "same"
    needs: tuple[Literal["compile", "compiler-cache", "cuda", "ranks"], ...] = ()
    runs: int = 0
    control: Literal["", "differs", "equal", "race"] = ""
    control_on: tuple[Literal["cuda", "cpu"], ...] = ("cuda", "cpu")
    race: Race | None = None
    exact: bool = False
    form: tuple[CallCondition, ...] = ()
    call: dict[str, dict[str, int | tuple[str, int]]] = {}
    given: Given = Given()
    mechanism: str = ""
    expect: Expectation = Expectation()
    source: str = ""
    note: str = ""
    library: str = ""


class RecipeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of recipes for one library."""

    schema: Literal[1]
    library: Literal["torch", "tensorflow"]
    recipes: list[Recipe]


def load_recipes(root: Path | None = None) -> list[Recipe]:
    """All recipes, by library and then in the order of their files. Raises KnowledgeError naming file and line."""
    directory = (root or rules_directory()) / "recipes"
    found = [recipe for path in sorted(directory.glob("*.yaml")) for recipe in load_file(path)]
    seen: set[str] = set()
    for recipe in found:
        if recipe.id in seen:
            raise KnowledgeError(str(directory), 1, f"two recipes are called {recipe.id}")
        seen.add(recipe.id)
    return found


def load_file(path: Path) -> list[Recipe]:
    """The recipes of one file. Raises KnowledgeError."""
    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        file = msgspec.convert(data, RecipeFile)
        for number, recipe in enumerate(file.recipes):
            for part in ("make", "fn"):
                _compiles(getattr(recipe, part), path, number, text)
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(str(path), 1, str(error)) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise KnowledgeError(str(path), mark.line + 1 if mark else 1, str(error).splitlines()[0]) from error
    except msgspec.ValidationError as error:
        where = re.search(r"\$\.recipes\[(\d+)\]", str(error))
        line = _line(text, int(where[1])) if where else 1
        raise KnowledgeError(str(path), line, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise KnowledgeError(str(path), 1, f"no valid YAML: {error}") from error
    return [msgspec.structs.replace(recipe, library=file.library) for recipe in file.recipes]


def function(name: str, argument: str, body: str) -> str:
    """Source of a function with a recipe's code as its body."""
    return f"def {name}({argument}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def _compiles(code: str, path: Path, number: int, text: str) -> None:
    try:
        compile(function("recipe", "i", code), "<recipe>", "exec")
    except SyntaxError as error:
        raise KnowledgeError(str(path), _line(text, number), f"{error.msg}: {error.text}") from error


def _line(text: str, number: int) -> int:
    """The line on which a recipe begins."""
    root = yaml.compose(text, yaml.SafeLoader)
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "recipes" and isinstance(value, yaml.SequenceNode):
                return int(value.value[number].start_mark.line) + 1
    return 1
