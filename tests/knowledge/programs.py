"""Small programs made from entries of the knowledge base: a call of an API whose arguments meet its conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import msgspec

from d9mlint.knowledge.schema import Condition

Arguments = dict[str, str]


def example_name(api: str) -> str:
    """A name that a pattern matches."""
    return api.replace("[a-z]*", "any").replace("*", "Any")


def imported(api: str) -> tuple[str, str]:
    """The import that an API needs, and the name by which it is called then."""
    head = api.partition(".")[0]
    if head == "tf":
        return "import tensorflow as tf", api
    if head == "builtins":
        return "", api.partition(".")[2]
    parts = api.split(".")
    modules = [part for part in parts[:-1] if part[:1].islower() or part in ("Any",)]
    return "import " + ".".join(parts[: max(1, len(modules))]), api


def is_method(api: str) -> bool:
    """Whether a name is that of a method of a class."""
    parts = api.split(".")
    return len(parts) > 2 and parts[-2][:1].isupper()


def arguments(when: Iterable[Condition], unless: Iterable[Condition] = ()) -> Arguments:
    """Keyword arguments, as code, with which all of the conditions hold and none of the others does."""
    given: Arguments = {}
    for test in when:
        given.update(_meeting(test, True))
    for test in unless:
        if not set(_meeting(test, False)) & set(given):
            given.update(_meeting(test, False))
    return _with_items({name: code for name, code in given.items() if code})


def _with_items(given: Arguments) -> Arguments:
    """Arguments of which some are items of a dictionary, as ``name[item]``."""
    plain = {name: code for name, code in given.items() if "[" not in name}
    for name, code in given.items():
        owner, bracket, item = name.rstrip("]").partition("[")
        if bracket:
            plain[owner] = f"{plain.get(owner, '{}')[:-1]}{item!r}: {code}, }}"
    return plain


def _meeting(test: Condition, wanted: bool) -> Arguments:
    """Arguments for which one condition holds, or does not; an empty text leaves the argument out."""
    if test.all_of is not None:
        return arguments(test.all_of) if wanted else _meeting(test.all_of[0], False)
    if test.any_of is not None:
        return _meeting(test.any_of[0], True) if wanted else _all(test.any_of, False)
    if test.none_of is not None:
        return _all(test.none_of, not wanted)
    if test.less_than is not None:
        return {test.arg: "1" if wanted else "3", test.less_than.arg: "3"}
    return {f"{test.arg}[{test.item}]" if test.item else test.arg: _value(test, wanted)}


def _all(tests: Iterable[Condition], wanted: bool) -> Arguments:
    return {name: code for test in tests for name, code in _meeting(test, wanted).items()}


def _value(test: Condition, wanted: bool) -> str:
    if test.given is not msgspec.UNSET:
        return "1" if test.given == wanted else ""
    if test.truthy is not msgspec.UNSET:
        return str(test.truthy == wanted)
    if test.is_a is not None:
        known = {"str": "'text'", "float": "0.5", "int": "3", "NoneType": "None"}
        first = test.is_a if isinstance(test.is_a, str) else test.is_a[0]
        other = "int" if first == "NoneType" else "NoneType"
        return known[first if wanted else other]
    if test.made_by is not None:
        # Sequences of Keras, configurations of RLlib and models, and functions of DGL are known by how they were made.
        made = test.made_by[0]
        home = "transformers" if made.endswith("Config") else "tf.keras.utils"
        home = "ray.rllib.algorithms.algorithm_config" if made == "AlgorithmConfig" else home
        home = "dgl.function" if made.islower() else home
        return f"{home}.{made}()" if wanted else "0.5"
    if test.stem is not None:
        return repr(test.stem) if wanted else "'other'"
    if test.mentions is not None:
        return repr(test.mentions) if wanted else "0.5"
    if test.length is not None:
        lengths = test.length if isinstance(test.length, list) else [test.length]
        return repr([1] * (lengths[0] if wanted else max(lengths) + 1))
    if test.equals is not msgspec.UNSET:
        return repr(test.equals) if wanted else _other(test.equals)
    if test.not_equals is not msgspec.UNSET:
        return _other(test.not_equals) if wanted else repr(test.not_equals)
    if test.contains is not None:
        return repr(f"x {test.contains}" if wanted else "x")
    if test.runs is not None:
        return repr(f"{test.runs} x" if wanted else "x")
    if test.words is not None:
        return repr(test.words.split() if wanted else ["x"])
    if not isinstance(test.one_of, msgspec.UnsetType):
        return repr(test.one_of[0]) if wanted else _other(test.one_of)
    if not isinstance(test.greater, msgspec.UnsetType):
        return f"{test.greater + 1 if wanted else test.greater:g}"
    return ""


def _other(value: Any) -> str:
    return "4" if isinstance(value, (int, float)) and not isinstance(value, bool) else repr(not value)


def call(name: str, given: Arguments, first: str = "") -> str:
    """The text of a call."""
    return f"{name}({', '.join([*([first] if first else []), *(f'{k}={v}' for k, v in given.items())])})"


def program(imports: Iterable[str], body: Iterable[str], before: Iterable[str] = ()) -> str:
    """A program with these imports whose main block is this body."""
    lines = [*dict.fromkeys(line for line in imports if line), "", *before, "", 'if __name__ == "__main__":']
    return "\n".join([*lines, *(f"    {line}" for line in body), ""])


LOADED = ("stable_baselines3.", "sb3_contrib.")
"""Before the names of classes of which an example is loaded."""


def use(api: str, given: Arguments, *, positional: int = 0) -> tuple[list[str], list[str]]:
    """Imports and lines that call an API, on a new object of its class where it is a method."""
    name = example_name(api)
    if is_method(name):
        owner, _, method = name.rpartition(".")
        line, called = imported(owner)
        if method.startswith("from_"):
            return [line], [f"result = {call(f'{called}.{method}', given)}", "print(result)"]
        given = dict(given)
        settings = ast.literal_eval(given.pop("self", "{}"))
        passed = {name.partition("@")[0]: repr(value) for name, value in settings.items()}
        # A new algorithm draws already where it is made.
        made = f"it = {called}.load('it.zip')" if owner.startswith(LOADED) else f"it = {call(called, passed)}"
        done = call("it" if method == "__call__" else f"it.{method}", given, ", ".join(["None"] * positional))
        return [line], [made, f"result = {done}", "print(result)"]
    line, called = imported(name)
    done = call(called, given, ", ".join(["None"] * positional))
    return [line], [f"result = {done}", "print(result)"]
