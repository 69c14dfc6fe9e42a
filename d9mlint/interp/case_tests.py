"""``match`` statements over the value of an option, read as the ``if`` statements that they stand for."""

from __future__ import annotations

from d9mlint.ir import nodes as m


def as_tests(stmt: m.Match) -> m.If | None:
    """``if subject == value: ... elif ...``; None where a case asks for more than a value, binds a name or has a guard."""
    if not isinstance(stmt.subject, (m.Name, m.Attr)):
        return None
    orelse: list[m.Stmt] = []
    for case in reversed(stmt.cases):
        if case.binds or case.guard is not None or not (case.values or case.irrefutable):
            return None
        if case.irrefutable:
            orelse = case.body
            continue
        tests: list[m.Expr] = [m.Compare(stmt.subject, ["=="], [one]) for one in case.values]
        test = tests[0]
        for one in tests[1:]:
            test = m.BoolOp("or", test, one)
        orelse = [m.If(test, case.body, orelse, stmt.start, stmt.end)]
    first = orelse[0] if orelse else None
    return first if isinstance(first, m.If) and first.start == stmt.start else None
