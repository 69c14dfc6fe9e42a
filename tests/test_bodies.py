"""Bodies of functions and classes: decoded when they are looked at, and let go between runs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from d9mlint.frontend.extract import extract
from d9mlint.ir import bodies, liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.codec import pack, unpack
from d9mlint.ir.traversal import parents

TEXT = """import a
def f(x):
    if x:
        import b
        return g(x)
    for i in x:
        pass
def g(y):
    return lambda: y
"""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bodies.forget()
    monkeypatch.setattr(bodies, "MOST_KEPT", 0)
    monkeypatch.setattr(m, "DECODED", [])
    yield
    bodies.forget()


def facts() -> m.FileFacts:
    found = unpack(pack(TEXT, extract(TEXT, "d")))
    assert found is not None
    return found


def test_nothing_is_decoded_before_it_is_asked_for() -> None:
    found = facts()
    assert m.DECODED == []
    assert found.functions[1].body is found.functions[1].body
    assert [found.functions[1]] == m.DECODED


def test_what_a_function_says_of_its_body_is_known_without_it() -> None:
    module, f, g, inner = facts().functions
    assert [(one.name, one.statements, one.imports) for one in (module, f, g, inner)] == [
        ("<module>", 3, True),
        ("f", 4, True),
        ("g", 1, False),
        ("<lambda>", 1, False),
    ]
    assert m.DECODED == []


def test_a_body_that_was_let_go_says_the_same_when_it_is_decoded_again() -> None:
    found = facts()
    f, g = found.functions[1:3]
    before, kept = f.body, g.body
    bodies.let_go(lambda: {id(g)})
    assert [g] == m.DECODED and g.body is kept
    assert f.body is not before and f.body == before


def test_the_body_of_a_class_is_kept_and_let_go_as_that_of_a_function_is() -> None:
    text = "class A:\n    if a:\n        x = 1\n    def f(self): pass\n"
    found = unpack(pack(text, extract(text, "d")))
    assert found is not None
    (cls,) = found.classes
    assert (cls.statements, m.DECODED) == (3, [])
    before = cls.body
    bodies.let_go(set)
    assert cls.body is not before and cls.body == before
    before = cls.body
    bodies.let_go(lambda: {id(cls)})
    assert cls.body is before


def test_what_was_kept_is_looked_at_again_when_others_have_come() -> None:
    found = facts()
    f, g = found.functions[1:3]
    before = f.body
    bodies.let_go(lambda: {id(f)})
    bodies.let_go(set)
    assert f.body is before, "nothing has been decoded since"
    assert g.body
    bodies.let_go(set)
    assert f.body is not before and f.body == before


def test_a_body_without_a_text_is_not_decoded_to_look_for_it() -> None:
    text = "counter = 0\ndef reads():\n    return counter\ndef other():\n    return something\n"
    found = unpack(pack(text, extract(text, "d")))
    assert found is not None
    _, reads, other = found.functions
    assert bodies.body_that_holds(reads, "absent", "something") == () and m.DECODED == []
    assert liveness.attribute_readers(found, "absent") == [] and m.DECODED == []
    assert liveness.readers(found, "counter") == [1]
    assert other not in m.DECODED and bodies.body_that_holds(reads, "absent", "counter") is reads.body


def test_while_few_are_decoded_none_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_KEPT", 1_000_000)
    f = facts().functions[1]
    before = f.body
    bodies.let_go(set)
    assert f.body is before


def test_parents_are_those_of_the_nodes_that_live() -> None:
    f = facts().functions[1]
    assert id(f.body[0].body[1]) in parents(f)  # type: ignore[union-attr]
    bodies.let_go(set)
    assert id(f.body[0].body[1]) in parents(f)  # type: ignore[union-attr]


def test_files_that_were_edited_are_held_by_nobody() -> None:
    f = facts().functions[1]
    assert f.body and [f] == m.DECODED
    bodies.forget()
    assert m.DECODED == [] and f.body is f.body


def test_another_body_is_that_of_the_function() -> None:
    f = facts().functions[1]
    changed = bodies.with_body(f, f.body[:1])
    assert changed.body == f.body[:1] and (changed.statements, changed.imports) == (3, True)
    assert msgspec.structs.replace(changed, packed=f.packed).body == f.body
