"""What a call or an import did is taken over wherever all that it asked has the same answer, and only there."""

from __future__ import annotations

import pytest
from perf.growth import PROGRAMS, exponent, measure
from test_entry_runs import codes, of_entry, run

from d9mlint.frontend.extract import extract
from d9mlint.interp.context import LOOPS, Running
from d9mlint.interp.events import Loop
from d9mlint.interp.heap import HEAP
from d9mlint.ir.codec import pack, unpack

BODY = "".join(f"    x = x + {i}\n" for i in range(50))


def steps(body: str) -> int:
    text = f"import os\nimport torch\n\ndef helper(x):\n{BODY}    return x\n\n{body}"
    return of_entry(run({"main.py": text}), "main.py").steps


def test_a_function_is_not_run_again_for_settings_that_it_never_asks_for() -> None:
    few, many = (
        steps("".join(f"os.environ['K{i}'] = '{i}'\nhelper(torch.ones(3))\n" for i in range(count)))
        for count in (10, 30)
    )
    assert many - few < 20 * 25  # half of what it takes to run its fifty statements each time


def test_a_function_is_run_again_when_what_it_asks_for_has_changed() -> None:
    text = (
        "import os\nimport torch\n\ndef choose():\n    if os.environ.get('SEED') == 'yes':\n"
        "        torch.manual_seed(0)\n\nchoose()\n{}choose()\nprint(torch.rand(3))\n"
    )
    assert "DET101" in codes(run({"main.py": text.format("")}), "main.py")
    assert "DET101" not in codes(run({"main.py": text.format("os.environ['SEED'] = 'yes'\n")}), "main.py")


def test_a_function_is_not_run_again_for_functions_replaced_that_it_never_looks_for() -> None:
    def replaced(what: str, count: int) -> int:
        return steps(
            "class Held:\n    hook = helper\n"
            + "".join(f"{what} = lambda x: {i}\nhelper(torch.ones(3))\n" for i in range(count))
        )

    for what in ("Held.hook", "os.hook", "hook"):
        assert replaced(what, 30) - replaced(what, 10) < 20 * 25


@pytest.mark.parametrize("hooks", ["Hooks", "hooks"])
def test_a_function_is_run_again_when_what_it_calls_is_replaced(hooks: str) -> None:
    text = (
        "import torch\nimport hooks\n\ndef seed():\n    torch.manual_seed(0)\n\ndef nothing():\n    pass\n\n"
        "class Hooks:\n    prepare = nothing\n    other = nothing\n\ndef inner():\n    {hooks}.prepare()\n\n"
        "def start():\n    inner()\n\nstart()\n{hooks}.{name} = seed\nstart()\nprint(torch.rand(3))\n"
    )
    for name, seeded in (("prepare", True), ("other", False)):
        files = {
            "main.py": text.format(hooks=hooks, name=name),
            "hooks.py": "def prepare():\n    pass\n\ndef other():\n    pass\n",
        }
        assert ("DET101" not in codes(run(files), "main.py")) is seeded


def test_what_a_call_did_to_the_state_is_done_again_where_it_is_taken_over() -> None:
    text = (
        "import torch\n\ndef seed():\n    torch.manual_seed(0)\n    return 1\n\ndef main(first):\n"
        "    if first:\n        seed()\n        print(torch.rand(3))\n    else:\n        seed()\n"
        "        print(torch.rand(4))\n\nimport sys\nmain(len(sys.argv) > 1)\n"
    )
    assert "DET101" not in codes(run({"main.py": text}), "main.py")


def test_an_import_that_sets_a_variable_is_the_same_for_every_entry_point() -> None:
    script = (
        "import pkg\nimport torch\ntorch.manual_seed(0)\ntorch.use_deterministic_algorithms(True)\n"
        "model = torch.nn.Linear(3, 3).cuda()\nmodel(torch.ones(3, device='cuda')).sum().backward()\n"
    )
    files = {
        "pkg/__init__.py": "import os\nos.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'\n",
        "run_a.py": script,
        "run_b.py": script,
    }
    both = run(files)
    assert codes(both, "run_a.py") == codes(both, "run_b.py")
    without = run({**files, "pkg/__init__.py": ""})
    assert codes(without, "run_b.py") - codes(both, "run_b.py") == {"DET305"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "dictionary"])
def test_the_cost_of_an_analysis_grows_with_the_program(name: str) -> None:
    make, sizes = PROGRAMS[name]
    small, large = measure(make(sizes[0])), measure(make(sizes[-1]))
    assert not large[2], "the run was cut"
    assert exponent((sizes[0], sizes[-1]), [float(small[0]), float(large[0])]) < 1.8


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        ("import torch\nx = torch.rand(3)\n", True),
        ("import torch\nx = torch.rand(3)  # a note\n# and one more\n", True),
        ("import torch\nx = torch.rand(4)\n", False),
        ("# a note\nimport torch\nx = torch.rand(3)\n", False),
    ],
)
def test_an_edit_that_no_run_can_see_leaves_the_facts_the_same(edited: str, same: bool) -> None:
    before, after = (
        unpack(pack(text, extract(text, ""))) for text in ("import torch\nx = torch.rand(3)\n", edited)
    )
    assert before is not None and after is not None and before.code
    assert (before.code == after.code) is same


READER = """
class Reader:
    def __init__(self, text):
        self.text = text
        self.index = 0
        self.char = None
        self.advance()

    def advance(self):
        index = self.index
        try:
            char = "<" + self.text[index]
        except IndexError:
            self.char = None
            return
        self.index = index + 1
        self.char = char

    def accept(self, char):
        if char == self.char:
            self.advance()
            return True
        return False


def level_0(reader):
    while reader.accept("x"):
        reader.advance()


"""


def test_a_value_that_is_made_anew_at_the_same_place_is_no_other_value() -> None:
    """A recursive descent through functions that each read one character more does not double at every level."""
    levels = "".join(
        f"def level_{k}(reader):\n    if reader.accept('a'):\n        level_{k - 1}(reader)\n"
        f"    elif reader.accept('b'):\n        level_{k - 1}(reader)\n    reader.advance()\n    level_{k - 1}(reader)\n\n\n"
        for k in range(1, 13)
    )
    text = f"import sys\n\n\n{READER}{levels}level_12(Reader(sys.argv[1]))\n"
    report = of_entry(run({"main.py": text}), "main.py")
    assert not report.cuts
    assert report.steps < 10_000


CACHE = """
cache = {{}}

def look_up(name):
    if name in cache:
        return cache[name]
    for known in cache:
        x = known
{body}
    cache[name] = {value}
    return cache[name]

def inner(name):
    return look_up(name)

def word():
    return sys.argv[1].strip()

"""


@pytest.mark.parametrize("value", ["name.lower()", "[name]", "{'name': name}", "Held(name)"])
def test_a_function_that_fills_a_cache_is_not_run_again_for_what_is_there_already(value: str) -> None:
    def steps_of(count: int) -> int:
        calls = "inner(word())\n" * count
        held = "class Held:\n    def __init__(self, name):\n        self.name = name\n"
        text = f"import sys\n{held}{CACHE.format(body=BODY.replace('x + ', 'x * '), value=value)}{calls}"
        return of_entry(run({"main.py": text}), "main.py").steps

    assert steps_of(30) - steps_of(10) < 20 * 25


@pytest.mark.parametrize(
    ("calls", "seeded"),
    [
        ("BOX['a'] = False\nlook()\nBOX['a'] = True\nlook()\n", True),
        ("BOX['a'] = False\nlook()\nBOX['a'] = False\nlook()\n", False),
        ("BOX['a'] = False\nlook()\nBOX['b'] = True\nlook()\n", True),
        ("BOX['a'] = Held(0)\nlook_in()\nBOX['a'] = Held(0)\nlook_in()\n", False),
        ("BOX['a'] = Held(0)\nlook_in()\nBOX['a'] = Held(1)\nlook_in()\n", True),
        ("BOX['a'] = Held(0)\nboth()\nBOX['a'] = ONE\nboth()\n", True),
        ("mark(Held(0))\nmark(ONE)\n", True),
        ("mark(Held(0))\nmark(Held(0))\n", False),
        ("LIST[:] = [0]\nscan()\nLIST.append(1)\nscan()\n", True),
        ("LIST.append(0)\nscan()\nscan()\n", False),
    ],
)
def test_what_a_container_holds_is_part_of_what_a_call_reads(calls: str, seeded: bool) -> None:
    """Also where one object in two places then is two objects now, and the other way round."""
    text = (
        "import torch\nBOX = {}\nLIST = []\n"
        "class Held:\n    def __init__(self, on):\n        self.on = on\n"
        "ONE = Held(0)\n"
        "def look():\n    for value in BOX.values():\n        if value:\n            torch.manual_seed(0)\n"
        "def look_in():\n    for value in BOX.values():\n        if value.on:\n            torch.manual_seed(0)\n"
        "def both():\n    for value in BOX.values():\n        value.on = 1\n    if ONE.on:\n"
        "        torch.manual_seed(0)\n    ONE.on = 0\n"
        "def mark(one):\n    one.on = 1\n    if ONE.on:\n        torch.manual_seed(0)\n    ONE.on = 0\n"
        "def scan():\n    for value in LIST:\n        if value:\n            torch.manual_seed(0)\n"
        f"{calls}print(torch.rand(3))\n"
    )
    assert ("DET101" not in codes(run({"main.py": text}), "main.py")) is seeded


NOTE = """
seen = {}


def note(name):
    seen[name] = len(seen)
    for known in seen:
        x = known
"""


def test_a_function_that_finds_other_circumstances_at_every_call_is_not_run_for_ever() -> None:
    body = "    x = x + 1\n" * 100
    calls = "".join(f"note('name {k}')\n" for k in range(400))
    report = of_entry(run({"main.py": f"{NOTE}{body}\n{calls}"}), "main.py")
    assert report.cuts
    assert report.steps < 15_000


def loops_of(*starts: int) -> Running:
    return Running(Loop(None, "main.py", None, start) for start in starts)


def test_whether_loops_are_nested_asks_for_those_around_a_call_only_where_they_decide() -> None:
    outer = HEAP.act
    act = HEAP.push()
    try:
        before, after = act.began - 1, act.began + 1
        assert loops_of(before, after, after).nested
        assert not act.circumstances
        one, two = loops_of(after), loops_of(before, after)
        assert (one.nested, two.nested) == (False, True)
        assert act.circumstances == {(LOOPS, "any", None)}
        question = (LOOPS, "any", None)
        assert loops_of().answer(question) != loops_of(before).answer(question)
        act.circumstances.clear()
        assert (loops_of(before).nested, loops_of(before, before).nested) == (False, True)
        assert act.circumstances == {(LOOPS, "count", None)}
    finally:
        HEAP.pop()
        assert HEAP.act is outer


def test_a_function_that_sets_elements_is_not_run_again_in_another_loop() -> None:
    def taken(count: int) -> int:
        calls = "".join(f"for epoch{i} in range(100):\n    work(torch.ones(3))\n" for i in range(count))
        text = f"import torch\n\ndef work(x):\n{BODY}    x[0] = 1.0\n    return x\n\n{calls}"
        return of_entry(run({"main.py": text}), "main.py").steps

    assert taken(20) - taken(10) < 10 * 25  # half of what it takes to run its fifty statements each time


def drawing(draw: str, body: str) -> str:
    return f"import torch\n\ndef shifted(x):\n{BODY}    return x + {draw}\n\n{body}"


TRAINING = (
    "x = 1.0\nmodel = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "def train(x):\n{}    loss = model(torch.ones(1, 2)).sum() * x\n"
    "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    "def inner():\n    return shifted(1.0)\nfor i in range(100):\n    {}\nfor epoch in range(100):\n    train({})\n"
    "    torch.save({{'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}}, 'c.pt')\n"
)


@pytest.mark.parametrize("call", ["shifted(1.0)", "inner()"])
def test_what_a_loop_draws_in_a_call_that_ran_before_it_is_drawn_in_that_loop(call: str) -> None:
    def states(*filled: str) -> list[str]:
        report = of_entry(run({"main.py": drawing("torch.rand(1)", TRAINING.format(*filled))}), "main.py")
        return [one.message for one in report.findings if one.code == "DET601"]

    assert not any("torch RNG" in one for one in states("", call, "x"))
    assert any("torch RNG" in one for one in states("", call, call))
    assert any("torch RNG" in one for one in states(f"    x = {call}\n", call, "x"))


def test_a_function_that_draws_is_not_run_again_in_another_loop() -> None:
    def taken(count: int) -> int:
        calls = "".join(f"for epoch{i} in range(100):\n    shifted(1.0)\n" for i in range(count))
        return of_entry(run({"main.py": drawing("torch.rand(3)", calls)}), "main.py").steps

    assert taken(20) - taken(10) < 10 * 25  # half of what it takes to run its fifty statements each time


def layers(*changed: bool) -> str:
    """A program that calls layers of which all parameters are frozen, but for those of a part that some are given."""
    text = (
        f"import torch\n\ndef use(layer, x):\n{BODY}    return layer(torch.tensor([[1, 2]]).cuda()).sum() + x\n\n"
        "def made():\n    layer = torch.nn.EmbeddingBag(10, 3, mode='max').cuda()\n"
        "    for one in layer.parameters():\n        one.requires_grad = False\n"
        "    return layer\n\n"
        "weight = torch.ones(1, requires_grad=True)\n"
    )
    # All behind the first are made by a call that is taken over.
    first = "layer = made()\n" + "".join(f"layer{i} = made()\n" for i in range(len(changed)))
    parts = "".join(f"layer{i}.part = torch.nn.Linear(3, 3)\n" for i, one in enumerate(changed) if one)
    uses = "".join(f"(use(layer{i}, 1.0) * weight).sum().backward()\n" for i in range(len(changed)))
    return text + first + parts + uses


def test_a_function_that_looks_at_all_of_an_object_is_not_run_again_for_one_that_holds_the_same() -> None:
    few, many = (of_entry(run({"main.py": layers(*[False] * n)}), "main.py").steps for n in (10, 30))
    assert many - few < 20 * 25  # half of what it takes to run its fifty statements each time


def test_a_function_that_looks_at_all_of_an_object_is_run_again_for_one_that_holds_more() -> None:
    assert "DET401" not in codes(run({"main.py": layers(False, False)}), "main.py")
    assert "DET401" in codes(run({"main.py": layers(False, True)}), "main.py")


def test_a_function_that_makes_a_layer_is_not_run_again_behind_a_model_that_was_moved() -> None:
    def taken(again: str) -> int:
        text = (
            f"import torch\n\ndef make(x):\n{BODY}    return torch.nn.Linear(2, 2, bias=x > 0)\n\n"
            f"make(1.0)\ntorch.nn.Linear(2, 2).cuda()\n{again}"
        )
        return of_entry(run({"main.py": text}), "main.py").steps

    assert taken("make(1.0)\n") - taken("") < 25  # half of what it takes to run its fifty statements


def test_a_function_is_not_run_again_in_another_context_that_records_no_gradient() -> None:
    def taken(mode: str) -> int:
        text = (
            f"import torch\n\nlayer = torch.nn.Linear(2, 2)\n\ndef use(x):\n{BODY}    return layer(torch.ones(1, 2)) + x\n\n"
            f"with torch.no_grad():\n    use(1.0)\nwith torch.{mode}():\n    use(1.0)\n"
        )
        return of_entry(run({"main.py": text}), "main.py").steps

    assert taken("inference_mode") == taken("no_grad") < taken("enable_grad") - 25


def test_a_function_that_writes_over_a_tensor_is_not_run_again_in_another_loop() -> None:
    def taken(count: int) -> int:
        calls = "".join(f"for epoch{i} in range(100):\n    use(1.0)\n" for i in range(count))
        text = f"import torch\n\nheld = torch.zeros(3)\n\ndef use(x):\n{BODY}    held.zero_()\n    return x\n\n{calls}"
        return of_entry(run({"main.py": text}), "main.py").steps

    assert taken(20) - taken(10) < 10 * 25  # half of what it takes to run its fifty statements each time
