"""What is found by name when a program runs: ``eval``, ``exec``, registries, the path on which imports are looked for."""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from d9mlint.interp import values as v
from d9mlint.interp.data import are_alike, chosen_in_module
from d9mlint.interp.frames import Frame
from d9mlint.interp.given_instead import unless_option
from d9mlint.interp.library import python_files
from d9mlint.interp.library.own_paths import literal_path
from d9mlint.interp.library.set_by_name import set_in_scope
from d9mlint.interp.places import running
from d9mlint.interp.text import written
from d9mlint.interp.trail import FUNCTIONS
from d9mlint.interp.usage import flatten
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.traversal import called_name, nodes, parents, receiver, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile

LONGEST = 1000
"""Characters of a text that ``eval`` and ``exec`` are followed into."""
REGISTRAR = "@registrar"
"""``Obj.api`` of what ``registry.register(...)`` gives: a decorator that stores what it decorates."""
_REGISTRIES = ("Registry", "ClassRegistry", "Registrable")


def at_path(interp: Interp, path: str, node: Any) -> v.Value:
    """What ``package.module.name`` names."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        mod = interp.import_parents(interp.frame.file, parts[:count])
        if mod is not None and mod.file is not None:
            found: v.Value = mod
            for part in parts[count:]:
                found = interp.attribute(found, part, node)
            return found
    return v.Ext(path)


READING = frozenset({"getattr", "__getattribute__"})
"""What gives an attribute by its name."""
_MOST_NAMED = 12


def named_methods(interp: Interp, reading: m.Call) -> tuple[list[v.Func], bool]:
    """The methods that ``getattr(self, name)(...)`` or ``self.__getattribute__(name)(...)`` may call: those of the class
    that the parts of the name which are known fit, and whether these are all; else those that are called nowhere by their
    own name, in no method of it."""
    word = called_name(reading)
    if word not in READING or not reading.args:
        return [], False
    first, *others = reading.args
    owner = receiver(reading)
    asked = first
    if word == "getattr":
        owner = first.id if isinstance(first, m.Name) else ""
        asked = others[0] if others else first
    inst = interp.lookup(owner) if owner and "." not in owner else None
    if not isinstance(inst, v.Inst):
        return [], False
    named: dict[str, v.Func] = {}
    said: set[str] = set()
    held: set[str] = {name for name in inst.attrs if isinstance(name, str)}
    for cls in inst.cls.mro():
        # The code of its methods is looked at.
        interp.whole(cls.file)
        for name, found in cls.env.all().items():
            if isinstance(found, v.Func):
                said |= _attributes_named(found.fn)
                if not name.startswith("__") and not found.decorated:
                    named.setdefault(name, found)
            if name not in named:
                held.add(name)
    pattern = name_pattern(interp, asked)
    fitting = [name for name in named if pattern is not None and re.fullmatch(pattern, name)]
    names = fitting or [name for name in named if name not in said]
    complete = bool(fitting) and not any(re.fullmatch(pattern or "", name) for name in held)
    # Objects of derived classes may have more, where no program shows which there are.
    complete = complete and inst.cls.find("__getattr__") is None and interp.entry is not None
    running = interp.frame.func
    methods = [named[name].bind(inst) for name in names if running is None or named[name].key != running.key]
    return (methods, complete) if len(methods) <= _MOST_NAMED else ([], False)


@memoized
def _attributes_named(function: m.Function) -> frozenset[str]:
    """The names of attributes that a function mentions."""
    parts = list(nodes(function.body))
    names = {part for one in parts if isinstance(one, m.Name) for part in one.id.split(".")[1:]}
    names |= {one.name for one in parts if isinstance(one, m.Attr)}
    return frozenset(names)


# ------------------------------------------------------------------------------------------------- eval


def evaluate(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``eval(text)`` of names, attributes and calls, where the text is known or its shape is."""
    if not args.pos:
        return None
    texts = _texts(args.pos[0])
    if not texts:
        return _evaluate_shape(interp, node)
    if len(texts) == 1 and not isinstance(args.pos[0], v.AnyOf):
        return _by_option(interp, _text(interp, texts[0], node), node)
    return _alternatives(interp, [lambda t=t: _text(interp, t, node) for t in texts])  # type: ignore[misc]


def _by_option(interp: Interp, chosen: v.Value, node: Any) -> v.Value:
    """What ``eval("models." + args.name)`` or ``eval("models." + args.name + ".build")`` gives by the default of an option,
    which may as well name something else that the module has."""
    parts = _parts(interp, node.args[0]) if isinstance(node, m.Call) and node.args else []
    named = [at for at, one in enumerate(parts) if one is not None and one.option]
    if len(named) != 1 or None in parts:
        return chosen
    texts = [str(one.value) for one in parts if one is not None]
    before, after = "".join(texts[: named[0]]), "".join(texts[named[0] + 1 :])
    name = parts[named[0]]
    owner: v.Value = interp.frame.mod if not before else _text(interp, before.removesuffix("."), node)
    if name is None or not isinstance(owner, v.Mod) or (before and not before.endswith(".")):
        return chosen
    if not after:
        return chosen_in_module(interp, owner, name, chosen)
    inside = after.removeprefix(".")
    if not after.startswith(".") or not inside.isidentifier() or not isinstance(chosen, (v.Cls, v.Func)):
        return chosen
    found: v.Value = chosen
    for one in owner.env.all().values():
        other = one.env.read(inside) if isinstance(one, v.Mod) else None
        if other is not None and other is not chosen and are_alike(chosen, other):
            found = unless_option(interp, found, other, name.option)
    return found


def _parts(interp: Interp, node: m.Expr) -> list[v.Lit | None]:
    """The parts from which a text is put together; None for one that is not known."""
    if isinstance(node, m.FString):
        return [piece for part in node.parts for piece in _parts(interp, part)]
    if isinstance(node, m.BinOp) and node.op == "+":
        return [*_parts(interp, node.left), *_parts(interp, node.right)]
    value = interp.eval(node) if isinstance(node, (m.Const, m.Name, m.Attr, m.Subscript)) else None
    return [value if isinstance(value, v.Lit) and isinstance(value.value, (str, int)) else None]


def _texts(value: v.Value) -> list[str]:
    """The texts that are known to be among the values that something may have."""
    return [
        one.value for one in v.alternatives(value) if isinstance(one, v.Lit) and isinstance(one.value, str)
    ]


def execute(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``exec(text)`` in the scope at hand: of expressions, and of assignments of attributes and of a module's names, where
    the text is known; of what stands in a file, all statements. ``exec(text, names)`` leaves what the file defines there."""
    if not args.pos or len(args.pos) > 2 or args.kw or args.star or args.dstar:
        # With other arguments nothing is followed.
        if not (_texts(args.pos[0]) if args.pos else ()):
            _any_code(interp, node)
        return None
    if len(args.pos) > 1 and not _is_call_of_globals(node):
        _execute_into(interp, args.pos[0], args.pos[1], node)
        return v.NONE
    texts = _texts(args.pos[0])
    if not texts:
        path = _path_of_text(args.pos[0])
        file = python_files.file_at(interp, path) if path is not None else None
        if file is not None:
            _run_in_place(interp, file, len(args.pos) > 1)
            return v.NONE
        _any_code(interp, node)
        if path is None:
            return None
        if interp.frame.func is None:
            # A file that is not known assigns variables anew.
            set_in_scope(interp.frame.mod.env, v.UNKNOWN, v.UNKNOWN)
        return v.NONE
    runs = [partial(_statements, interp, text, node) for text in texts]
    if len(runs) == 1 and not isinstance(args.pos[0], v.AnyOf):
        return runs[0]()
    return _alternatives(interp, runs)


def _any_code(interp: Interp, node: Any) -> None:
    interp.gap("dynamic-call", f"which code `{written(node)}` runs is decided at run time", node)


def _execute_into(interp: Interp, text: v.Value, names: v.Value, node: Any) -> None:
    """``exec(open("config.py").read(), names)``: a dict gets the variables of the file."""
    path = _path_of_text(text)
    given = python_files.variables(interp, path) if path is not None else None
    if given is None and not _texts(text):
        _any_code(interp, node)
    for one in v.alternatives(names):
        if isinstance(one, v.Mapping):
            one.items.update(given or {})
            one.open = True


def _is_call_of_globals(node: Any) -> bool:
    return isinstance(node, m.Call) and len(node.args) > 1 and called_name(node.args[1]) == "globals"


_COMPILE = "builtins.compile"
_READS = frozenset({"read", "read_text", "read_bytes"})


def _path_of_text(text: v.Value) -> v.Value | None:
    """The path of the file of which a text is all that stands in it; None for another text."""
    if isinstance(text, v.Obj) and text.api == _COMPILE and text.args.pos:
        text = text.args.pos[0]
    if not isinstance(text, v.Obj) or not isinstance(text.owner, v.Obj):
        return None
    if text.api.rpartition(".")[2] not in _READS:
        return None
    opened = text.owner
    path = opened if literal_path(opened) is not None else opened.args.get("file", 0)
    known = literal_path(path)
    return v.Lit(known) if known is not None and not v.option_of(path or v.UNKNOWN) else v.UNKNOWN


def _run_in_place(interp: Interp, file: ModuleFile, at_top: bool = False) -> None:
    """Run the statements of a file as if they stood where the program is, or ``at_top`` of the module."""
    if file.facts.problem is not None or any(frame.file is file for frame in interp.stack()):
        return
    outer = interp.frame
    interp.visited.add((file.path, 0))
    interp.trail.append(FUNCTIONS.number((file.path, 0)))
    env = outer.mod.env if at_top else outer.env
    interp.frame = Frame(outer.mod, file, env, file.relative, outer, interp.here())
    interp.block(file.facts.functions[0].body)
    interp.frame = outer


def _alternatives(interp: Interp, makers: Sequence[Callable[[], v.Value]]) -> v.Value:
    results: list[v.Value] = []
    interp.branch([lambda make=make: results.append(make()) for make in makers])  # type: ignore[misc]
    return v.join(results)


def _evaluate_shape(interp: Interp, node: Any) -> v.Value:
    """``eval(f"{command}(args)")`` with an unknown command: any function of the module may be meant."""
    if not isinstance(node, m.Call) or not node.args:
        return v.UNKNOWN
    shape = name_pattern(interp, node.args[0])
    if shape is None:
        return v.UNKNOWN
    head, _, rest = shape.partition("\\(")
    if not rest:
        return v.UNKNOWN
    arguments = re.sub(r"\\(.)", r"\1", "(" + rest) if "\\w" not in rest else "(*_)"
    names = [name for name in functions_of(interp.frame.mod) if re.fullmatch(head, name)]
    return _guessed(interp, [name + arguments for name in names], node)


def _guessed(interp: Interp, texts: list[str], node: Any) -> v.Value:
    results: list[v.Value] = [v.UNKNOWN]
    interp.may_happen([lambda t=t: results.append(_text(interp, t, node)) for t in texts])  # type: ignore[misc]
    return v.join(results)


def functions_of(mod: v.Mod) -> dict[str, v.Value]:
    """The functions and classes that a module defines."""
    return {
        name: value
        for name, value in mod.env.all().items()
        if isinstance(value, (v.Func, v.Cls)) and value.mod is mod
    }


MOST_MODULES = 64
"""So many modules are imported at most where their names are not known."""


def modules_like(interp: Interp, node: Any) -> list[v.Value]:
    """The modules of a project package that ``import_module(f"package.{name}")`` or
    ``import_module(f"package.{name}.part")`` may mean, imported in the order of their names."""
    shape = name_pattern(interp, node.args[0]) if isinstance(node, m.Call) and node.args else None
    if shape is None or "\\." not in shape or shape.startswith("\\w"):
        return [v.UNKNOWN]
    package = shape.split("\\w")[0].replace("\\.", ".").rpartition(".")[0].replace("\\", "")
    found = interp.find_module(interp.frame.file, package) if package else None
    if found is None:
        return [v.UNKNOWN]
    made: list[v.Value] = []
    for file in interp.modules.files:
        if file.notebook or not file.path.startswith(found.directory + "/"):
            continue
        inside = (file.directory if file.is_package else file.path.removesuffix(".py"))[
            len(found.directory) + 1 :
        ]
        name = f"{package}.{inside.replace('/', '.')}"
        if re.fullmatch(shape, name):
            mod = interp.import_parents(interp.frame.file, name.split("."))
            if mod is not None and len(made) < MOST_MODULES:
                made.append(mod)
    return made or [v.UNKNOWN]


_MOST_FILES = 200
"""In so many files at most what is asked of a module is looked for."""


def modules_with(interp: Interp, node: Any) -> v.Value:
    """The modules of the project that ``import_module(name)`` may mean where nothing is known of the name, as what it is
    given on the command line: those beside the program, and below, that define all that it asks the module for."""
    names = _asked_of(interp, node) if isinstance(node, m.Call) else set[str]()
    top = interp.entry_directory or interp.modules.root
    files = [one for one in interp.modules.files if not one.notebook and one.path.startswith(f"{top}/")]
    if not names or len(files) > _MOST_FILES:
        return v.UNKNOWN
    meant = []
    for file in files:
        if file is interp.frame.file or file is interp.entry:
            continue
        interp.whole(file)
        if file.defines(sorted(names)):
            meant.append(file)
    if len(meant) > v.MAX_ALTERNATIVES:
        return v.UNKNOWN

    def imported(file: ModuleFile) -> Callable[[], v.Value]:
        return lambda: interp.import_found(interp.modules.found(file), interp.modules.name_of(file))

    if len(meant) == 1:
        return imported(meant[0])()
    return _alternatives(interp, [imported(file) for file in meant]) if meant else v.UNKNOWN


def _asked_of(interp: Interp, node: m.Call) -> set[str]:
    """The names that the running function reads of what a call gives, at the call or by the variable that holds it."""
    function = running(interp)
    above = parents(function) if function is not None else {}
    user = above.get(id(node))
    if isinstance(user, m.Attr):
        return _own({user.name})
    first = _read_from(user, node)
    if first or function is None:
        return _own({first})
    target = user.targets[0] if isinstance(user, m.Assign) and len(user.targets) == 1 else None
    if not isinstance(target, m.Name) or "." in target.id:
        return set()
    found = set()
    for one in variables(function).get(target.id, ()):
        _, _, rest = one.id.partition(".")
        found.add(rest.partition(".")[0] or _read_from(above.get(id(one)), one))
    return _own(found)


def _read_from(user: Any, node: Any) -> str:
    """The name that ``getattr(module, "name")`` reads of a module at a node."""
    if (
        isinstance(user, m.Call)
        and called_name(user) == "getattr"
        and len(user.args) > 1
        and user.args[0] is node
    ):
        named = user.args[1]
        return named.value if isinstance(named, m.Const) and isinstance(named.value, str) else ""
    return ""


def _own(names: set[str]) -> set[str]:
    """Names without those that every module has."""
    return {one for one in names if one and not one.startswith("__")}


def name_pattern(interp: Interp, node: m.Expr) -> str | None:
    """A regular expression for a text of which some parts are known; None where nothing is."""
    pieces = _pieces(interp, node)
    if not any(piece is not None for piece in pieces):
        return None
    return "".join(r"\w+" if piece is None else re.escape(piece) for piece in pieces)


def _pieces(interp: Interp, node: m.Expr) -> list[str | None]:
    if isinstance(node, m.FString):
        return [piece for part in node.parts for piece in _pieces(interp, part)]
    if isinstance(node, m.BinOp) and node.op == "+":
        return [*_pieces(interp, node.left), *_pieces(interp, node.right)]
    if isinstance(node, (m.Const, m.Name)):
        value = interp.eval(node)
        if isinstance(value, v.Lit) and isinstance(value.value, (str, int)):
            return [str(value.value)]
    return [None]


def _text(interp: Interp, text: str, node: Any) -> v.Value:
    tree = _parsed(text.strip(), "eval")
    return _expression(interp, tree.body, node) if isinstance(tree, ast.Expression) else v.UNKNOWN


def _parsed(text: str, mode: Literal["eval", "exec"]) -> ast.AST | None:
    if len(text) > LONGEST:
        return None
    try:
        return ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statements(interp: Interp, text: str, node: Any) -> v.Value:
    tree = _parsed(textwrap.dedent(text).strip(), "exec")
    body = tree.body if isinstance(tree, ast.Module) else []
    if all(isinstance(one, (ast.Expr, ast.Pass)) or _is_assignment(one) for one in body):
        for one in body:
            if isinstance(one, ast.Expr):
                _expression(interp, one.value, node)
            elif isinstance(one, ast.Assign):
                _assign(interp, one.targets[0], _expression(interp, one.value, node), node)
    return v.NONE


def _is_assignment(stmt: ast.stmt) -> bool:
    return (
        isinstance(stmt, ast.Assign)
        and len(stmt.targets) == 1
        and isinstance(stmt.targets[0], (ast.Name, ast.Attribute))
    )


def _assign(interp: Interp, target: ast.expr, value: v.Value, node: Any) -> None:
    if isinstance(target, ast.Attribute):
        interp.assign_attribute(_expression(interp, target.value, node), target.attr, value, node)
    elif isinstance(target, ast.Name) and interp.frame.func is None:
        # In a function no variable is assigned so.
        interp.bind(target.id, value)


def _expression(interp: Interp, tree: ast.expr, node: Any) -> v.Value:
    if isinstance(tree, ast.Name):
        return interp.lookup(tree.id) or v.UNKNOWN
    if isinstance(tree, ast.Attribute):
        return interp.attribute(_expression(interp, tree.value, node), tree.attr, node)
    if isinstance(tree, ast.Constant):
        return v.Lit(tree.value) if isinstance(tree.value, (str, int, float, type(None))) else v.UNKNOWN
    if isinstance(tree, (ast.List, ast.Tuple)) and not any(isinstance(x, ast.Starred) for x in tree.elts):
        kind = "l" if isinstance(tree, ast.List) else "t"
        return v.Items(kind, [_expression(interp, one, node) for one in tree.elts])
    if isinstance(tree, ast.Call):
        func = _expression(interp, tree.func, node)
        star = any(isinstance(one, ast.Starred) for one in tree.args)
        pos = [_expression(interp, one, node) for one in tree.args if not isinstance(one, ast.Starred)]
        kw = {k.arg: _expression(interp, k.value, node) for k in tree.keywords if k.arg is not None}
        return interp.call(func, v.Args(pos, kw, star, len(kw) < len(tree.keywords)), node)
    return v.UNKNOWN


# ------------------------------------------------------------------------------------------ registries


def is_registry(value: v.Value) -> bool:
    """Whether a library object keeps classes under names: ``Registry("models")`` of mmengine, fvcore, ..."""
    return isinstance(value, v.Obj) and value.api.rpartition(".")[2] in _REGISTRIES


def register(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``@registry.register_module("name")`` and ``registry.register("name", cls)``."""
    if not isinstance(owner, v.Obj) or not is_registry(owner):
        return None
    given = args.values()
    key = next((x.value for x in given if isinstance(x, v.Lit) and isinstance(x.value, str)), "")
    target = next((x for x in given if isinstance(x, (v.Func, v.Cls, v.Partial))), None)
    if target is not None:
        _keep(owner, key, target)
        return target
    return v.Obj(REGISTRAR, "", v.Args([owner, v.Lit(key)]), node)


def registry_of(decorator: v.Value) -> str:
    """The name of the function or method that keeps what a decorator of a library decorates, or may; for a method of an
    object that the project makes, with the place where it does."""
    if isinstance(decorator, v.Obj) and decorator.api == REGISTRAR:
        owner: v.Value = decorator.args.pos[0]
        name = "register"
    elif isinstance(decorator, v.Member):
        owner, name = decorator.owner, decorator.name
    elif isinstance(decorator, v.Obj):
        return decorator.api
    else:
        return decorator.name if isinstance(decorator, v.Ext) else ""
    if not isinstance(owner, v.Obj):
        return ""
    made = (
        f"@{owner.file.path}:{owner.node.start}" if owner.file is not None and owner.node is not None else ""
    )
    return f"{owner.type or owner.api}.{name}{made}"


def keep(decorator: v.Value, target: v.Value) -> bool:
    """Let a decorator that belongs to a registry store what it decorates; whether it is one."""
    if isinstance(decorator, v.Obj) and decorator.api == REGISTRAR:
        owner, key = decorator.args.pos
        if isinstance(owner, v.Obj) and isinstance(key, v.Lit):
            _keep(owner, key.value, target)
        return True
    if (
        isinstance(decorator, v.Member)
        and decorator.name.startswith("register")
        and is_registry(decorator.owner)
    ):
        assert isinstance(decorator.owner, v.Obj)
        _keep(decorator.owner, "", target)
        return True
    return False


def _keep(owner: v.Obj, key: str, target: v.Value) -> None:
    if not key and isinstance(target, v.Cls):
        key = target.cls.name
    elif not key and isinstance(target, v.Func):
        key = target.fn.name
    if key:
        owner.attrs["@" + key] = target


def get(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``registry.get("name")``."""
    if not isinstance(owner, v.Obj) or not is_registry(owner):
        return None
    key = args.pos[0] if args.pos else next(iter(args.kw.values()), v.UNKNOWN)
    return registered(owner, key)


def registered(owner: v.Obj, key: v.Value) -> v.Value:
    """What a registry keeps under a name; any of all under an unknown one."""
    if isinstance(key, v.Lit):
        found: v.Value | None = owner.attrs.get("@" + str(key.value))
        return found if found is not None else v.UNKNOWN
    every = [value for name, value in owner.attrs.items() if isinstance(name, str) and name.startswith("@")]
    return v.candidates([*every, v.UNKNOWN]) if every else v.UNKNOWN


def build(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``registry.build(dict(type="Name", ...))``: the class is called with the other keys."""
    if not isinstance(owner, v.Obj) or not is_registry(owner):
        return None
    config = args.pos[0] if args.pos else args.kw.get("cfg", v.UNKNOWN)
    return _built(interp, owner, config, args.kw, node)


def build_from_cfg(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``build_from_cfg(cfg, registry, default_args)`` of mmcv and mmengine."""
    config, owner = args.get("cfg", 0), args.get("registry", 1)
    if not isinstance(owner, v.Obj) or not is_registry(owner) or config is None:
        return None
    return _built(interp, owner, config, {}, node)


def _built(interp: Interp, owner: v.Obj, config: v.Value, extra: dict[str, v.Value], node: Any) -> v.Value:
    if not isinstance(config, v.Mapping):
        func = registered(owner, v.UNKNOWN)
        return interp.call(func, v.Args(star=True, dstar=True), node) if func is not v.UNKNOWN else func
    kind: v.Value = config.items.get("type", v.UNKNOWN)
    given = {k: x for k, x in config.items.items() if isinstance(k, str) and k != "type"}
    given.update({k: x for k, x in extra.items() if k not in ("cfg", "default_args")})
    func = kind if isinstance(kind, (v.Cls, v.Func)) else registered(owner, kind)
    return interp.call(func, v.Args([], given, dstar=config.open), node)


# ------------------------------------------------------------------------------------------- sys.path


SEARCH_PATH = "sys.path"
"""Stands among the libraries of a program that has extended the path on which imports are looked for."""


def extend_path(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``sys.path.append(...)``: imports may mean files anywhere in the tree from now on, and those in the directory that is
    added before others."""
    added = [SEARCH_PATH]
    if interp.entry is not None:
        given = [one for value in args.values() for one in flatten(value)]
        added += [on_search_path(one) for value in given if (one := _directory(interp, value))]
    interp.libraries.update(added)
    if interp.import_log is not None:
        interp.import_log.imported.update(added)
    return v.NONE


def on_search_path(directory: str) -> str:
    """Stands among the libraries of a program that looks for what it imports in this directory, too."""
    return f"{SEARCH_PATH}: {directory}"


def _directory(interp: Interp, value: v.Value) -> str:
    """The directory of the project that a path means; empty where it means none. A relative one is where the program
    stands, as far as a module that is imported can know that: below the root of the project."""
    path = literal_path(value)
    if path is None or (isinstance(value, v.Lit) and value.option):
        return ""
    places = [interp.modules.root]
    if interp.importing == 0 and interp.first_on_path:
        places.insert(0, interp.first_on_path)
    found = [posixpath.normpath(posixpath.join(place, path)) for place in places]
    return next((one for one in found if one in interp.modules.directories), "")


REFLECTION_MODELS = {
    "builtins.eval": evaluate,
    "builtins.exec": execute,
    **{f"sys.path.{name}": extend_path for name in ("append", "insert", "extend", "__iadd__")},
    "site.addsitedir": extend_path,
    **{
        f"{head}.build_from_cfg": build_from_cfg
        for head in ("mmcv", "mmcv.utils", "mmengine", "mmengine.registry")
    },
}
REFLECTION_METHODS = {
    **{f"*.{name}": register for name in ("register", "register_module", "register_class", "register_obj")},
    "*.build": build,
}
