"""The language server, driven by a client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.client import LanguageClient

Project = Callable[[dict[str, str]], Path]
PATIENCE = 300
"""Seconds after which a test gives up; an answer takes less than one on an idle machine."""

TRAIN = """\
import torch
from layers import pool


def main():
    torch.backends.cudnn.benchmark = True
    x = torch.randn(1, 1, 4, device="cuda", requires_grad=True)
    pool(torch.conv1d(x, x)).backward()


if __name__ == "__main__":
    main()
"""
LAYERS = "def pool(x):\n    return x.sum()\n"
NOISY = "import random\n\n\ndef pool(x):\n    return x.sum() * random.random()\n"


class Editor:
    """An editor: what it was told, and what it does."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self.diagnostics: dict[str, list[lsp.Diagnostic]] = {}
        self.published: list[str] = []
        self.messages: list[str] = []
        self.registered: list[str] = []
        self.versions: dict[str, int] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)
            self.published.append(params.uri)

        @self.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def message(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        def register(params: lsp.RegistrationParams) -> None:
            self.registered += [one.method for one in params.registrations]

    async def start(self, *folders: Path, options: Any = None) -> None:
        await self.client.start_io(sys.executable, "-m", "d9mlint", "server")
        self.capabilities = (
            await self.client.initialize_async(
                lsp.InitializeParams(
                    process_id=os.getpid(),
                    capabilities=lsp.ClientCapabilities(
                        workspace=lsp.WorkspaceClientCapabilities(
                            workspace_folders=True,
                            did_change_watched_files=lsp.DidChangeWatchedFilesClientCapabilities(
                                dynamic_registration=True
                            ),
                        )
                    ),
                    workspace_folders=[lsp.WorkspaceFolder(f.as_uri(), f.name) for f in folders],
                    initialization_options=options,
                )
            )
        ).capabilities
        self.client.initialized(lsp.InitializedParams())

    def open(self, path: Path, text: str | None = None) -> None:
        content = path.read_text() if text is None else text
        self.versions[path.as_uri()] = 1
        self.client.text_document_did_open(
            lsp.DidOpenTextDocumentParams(
                lsp.TextDocumentItem(path.as_uri(), lsp.LanguageKind.Python, 1, content)
            )
        )

    def type(self, path: Path, text: str) -> None:
        uri = path.as_uri()
        self.versions[uri] += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def touched(self, path: Path, how: lsp.FileChangeType) -> None:
        self.client.workspace_did_change_watched_files(
            lsp.DidChangeWatchedFilesParams([lsp.FileEvent(path.as_uri(), how)])
        )

    def close(self, path: Path) -> None:
        self.client.text_document_did_close(
            lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(path.as_uri()))
        )

    def codes(self, path: Path) -> list[str]:
        return sorted(str(d.code) for d in self.diagnostics.get(path.as_uri(), []))

    async def until(self, true: Callable[[], Any], what: str = "") -> None:
        limit = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < limit, (
                f"nothing came: {what} {self.messages} { {k: [d.code for d in v] for k, v in self.diagnostics.items()} }"
            )
            await asyncio.sleep(0.02)

    async def actions(self, path: Path, line: int, only: Any = None) -> list[lsp.CodeAction]:
        place = lsp.Range(lsp.Position(line, 0), lsp.Position(line, 200))
        shown = [d for d in self.diagnostics.get(path.as_uri(), []) if d.range.start.line == line]
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(path.as_uri()), place, lsp.CodeActionContext(shown, only)
            )
        )
        return [one for one in found or [] if isinstance(one, lsp.CodeAction)]

    async def lenses(self, path: Path) -> list[lsp.CodeLens]:
        about = lsp.CodeLensParams(lsp.TextDocumentIdentifier(path.as_uri()))
        return list(await self.client.text_document_code_lens_async(about) or [])

    async def stop(self) -> None:
        await asyncio.wait_for(self.client.shutdown_async(None), PATIENCE)
        self.client.exit(None)
        await asyncio.wait_for(self.client.stop(), PATIENCE)


def drive(session: Callable[[Editor], Awaitable[None]]) -> None:
    """Run a session with an editor of its own; the server ends with it."""

    async def run() -> None:
        editor = Editor()
        try:
            await asyncio.wait_for(session(editor), 2 * PATIENCE)
        finally:
            await editor.stop()

    asyncio.run(run())


def applied(text: str, edit: lsp.WorkspaceEdit, uri: str) -> str:
    """A text with the edits of an action; columns are those of ASCII."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    assert edit.changes is not None
    for one in sorted(
        edit.changes[uri], key=lambda e: (e.range.start.line, e.range.start.character), reverse=True
    ):
        first = starts[one.range.start.line] + one.range.start.character
        last = starts[one.range.end.line] + one.range.end.character
        text = text[:first] + one.new_text + text[last:]
    return text


@pytest.fixture
def program(project: Project) -> Path:
    return project({"train.py": TRAIN, "layers.py": LAYERS})


def test_a_session_in_an_editor(program: Path) -> None:
    """What a user does: looks at findings, types, breaks the syntax, fixes, asks, closes without saving."""
    train, layers = program / "train.py", program / "layers.py"

    async def session(editor: Editor) -> None:
        await editor.start(program)
        # Files that are not open have findings too.
        await editor.until(lambda: editor.codes(train) == ["DET101", "DET301", "DET302"], "first findings")
        assert "workspace/didChangeWatchedFiles" in editor.registered
        (found,) = [d for d in editor.diagnostics[train.as_uri()] if d.code == "DET301"]
        assert (found.range.start, found.range.end) == (lsp.Position(5, 4), lsp.Position(5, 41))
        assert found.severity is lsp.DiagnosticSeverity.Error and found.source == "d9mlint"
        assert found.related_information is not None
        assert found.related_information[0].message == "main() is called here"
        assert found.related_information[0].location.range.start.line == 11

        # An unsaved buffer counts, with positions in it; what another file finds of it follows.
        editor.open(train)
        editor.open(layers)
        editor.type(layers, NOISY)
        await editor.until(lambda: editor.codes(layers) == ["DET103"], "an unsaved buffer")
        (draw,) = editor.diagnostics[layers.as_uri()]
        assert [one.message for one in draw.related_information or []][-1] == "pool() is called here"

        # A text that does not parse has a finding that says so, and comes back when it does.
        editor.type(train, TRAIN.replace("def main():", "def main(:"))
        await editor.until(lambda: editor.codes(train) == ["DET001"], "a syntax error")
        editor.type(train, "\n\n" + TRAIN)
        await editor.until(lambda: "DET301" in editor.codes(train), "a text that parses again")
        (moved,) = [d for d in editor.diagnostics[train.as_uri()] if d.code == "DET301"]
        assert moved.range.start == lsp.Position(7, 4)
        await editor.until(lambda: len(editor.codes(train)) == 3)

        # Fixes, labelled; a comment that ignores; hover with the page; a lens with the coverage.
        actions = {one.title: one for one in await editor.actions(train, 7)}
        fix = actions["DET301: Set `benchmark` to `False` (safe fix)"]
        assert fix.is_preferred and fix.edit is not None
        assert "benchmark = False" in applied("\n\n" + TRAIN, fix.edit, train.as_uri())
        ignore = actions["Ignore DET301 (cudnn-benchmark) on this line"]
        assert ignore.edit is not None
        text = applied("\n\n" + TRAIN, ignore.edit, train.as_uri())
        unsafe = [t for t in [one.title for one in await editor.actions(train, 8)] if "unsafe fix" in t]
        assert unsafe and not any(one.is_preferred for one in await editor.actions(train, 8))
        (every,) = await editor.actions(train, 0, only=["source.fixAll"])
        assert every.kind == "source.fixAll.d9mlint"
        page = await editor.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(train.as_uri()), lsp.Position(7, 10))
        )
        assert page is not None and isinstance(page.contents, lsp.MarkupContent)
        assert "# DET301" in page.contents.value or "cudnn-benchmark" in page.contents.value
        # What is shown above an entry point comes with the answer for all files.
        limit = time.monotonic() + PATIENCE
        while not (lenses := await editor.lenses(train)):
            assert time.monotonic() < limit
            await asyncio.sleep(0.02)
        (lens,) = lenses
        assert lens.command is not None and "entry point" in lens.command.title
        await editor.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams(lens.command.command, lens.command.arguments)
        )
        await editor.until(lambda: any("followed" in m for m in editor.messages), "the coverage")

        editor.type(train, text)
        await editor.until(
            lambda: "DET301" not in editor.codes(train) and editor.codes(train), "an ignored finding"
        )

        # Closed without saving: what is on disk counts.
        editor.close(layers)
        await editor.until(lambda: not editor.codes(layers), "a closed buffer")

    drive(session)
    assert layers.read_text() == LAYERS and train.read_text() == TRAIN


@pytest.mark.full
def test_files_come_go_and_are_configured(program: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    train, layers = program / "train.py", program / "layers.py"
    outside = tmp_path_factory.mktemp("elsewhere") / "alone.py"
    outside.write_text("import random\n\nprint(random.random())\n")

    async def session(editor: Editor) -> None:
        await editor.start(program)
        await editor.until(lambda: len(editor.codes(train)) == 3)
        # A new file, a file under another name, a deleted file.
        new = program / "second.py"
        new.write_text("import random\n\nprint(random.random())\n")
        editor.touched(new, lsp.FileChangeType.Created)
        await editor.until(lambda: editor.codes(new) == ["DET103"], "a new file")
        renamed = program / "renamed.py"
        new.rename(renamed)
        editor.touched(new, lsp.FileChangeType.Deleted)
        editor.touched(renamed, lsp.FileChangeType.Created)
        await editor.until(
            lambda: editor.codes(renamed) == ["DET103"] and not editor.codes(new), "a new name"
        )
        renamed.unlink()
        editor.touched(renamed, lsp.FileChangeType.Deleted)
        await editor.until(lambda: not editor.codes(renamed), "a deleted file")
        # Changed on disk by something else than the editor.
        layers.write_text(NOISY)
        editor.touched(layers, lsp.FileChangeType.Changed)
        await editor.until(lambda: editor.codes(layers) == ["DET103"], "a file that was changed on disk")
        # Another configuration; then one that is wrong, which is said and does not end the server.
        config = program / "d9mlint.toml"
        config.write_text('ignore = ["DET1"]\n')
        editor.touched(config, lsp.FileChangeType.Created)
        await editor.until(lambda: editor.codes(train) == ["DET301", "DET302"], "a configuration")
        config.write_text("no-such-key = 1\n")
        editor.touched(config, lsp.FileChangeType.Changed)
        await editor.until(lambda: any("no-such-key" in m for m in editor.messages), "a wrong configuration")
        config.unlink()
        editor.touched(config, lsp.FileChangeType.Deleted)
        await editor.until(lambda: "DET101" in editor.codes(train), "no configuration")
        # A file outside of all folders, and a document that is on no disk.
        editor.open(outside)
        await editor.until(lambda: editor.codes(outside) == ["DET103"], "a file outside of the workspace")
        editor.close(outside)
        await editor.until(lambda: not editor.codes(outside), "a closed file outside of the workspace")
        editor.open(program / "unsaved.py", "import random\n\nprint(random.random())\n")
        await editor.until(
            lambda: editor.codes(program / "unsaved.py") == ["DET103"], "a file that is not saved yet"
        )

    drive(session)


@pytest.mark.full
def test_two_folders_have_their_own_configurations(tmp_path: Path) -> None:
    code = "import random\n\nprint(random.random())\n"
    for name, config in (("one", ""), ("two", 'ignore = ["DET103"]\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "d9mlint.toml").write_text(config)
        (tmp_path / name / "run.py").write_text(code)
    one, two = tmp_path / "one" / "run.py", tmp_path / "two" / "run.py"

    async def session(editor: Editor) -> None:
        await editor.start(
            tmp_path / "one", tmp_path / "two", options={"settings": {"extend-select": ["DET8"]}}
        )
        await editor.until(lambda: editor.codes(one) == ["DET103"])
        editor.open(two)
        editor.type(two, code + "import torch\ntorch.randn(2)\n")
        await editor.until(lambda: editor.codes(two) == ["DET101"], "the second folder")
        change = lsp.WorkspaceFoldersChangeEvent(
            [], [lsp.WorkspaceFolder((tmp_path / "one").as_uri(), "one")]
        )
        editor.client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(change))
        await editor.until(lambda: not editor.codes(one), "a folder that is gone")

    drive(session)


def test_without_pygls_the_command_says_what_to_install(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from d9mlint.cli import server
    from d9mlint.cli.app import run

    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert run(["server"]) == 2
    assert "pip install 'pygls>=2'" in capfd.readouterr().err


def test_columns_are_counted_as_the_client_does() -> None:
    from d9mlint.base.source import make_source
    from d9mlint.server.convert import Converter

    source = make_source("a.py", "x = '😀é'; y\n".encode())
    at = source.text.index("y")
    found = [
        Converter(lambda p: source, e).position(source, at).character for e in ("utf-8", "utf-16", "utf-32")
    ]
    assert found == [14, 11, 10]
    assert uris.from_fs_path("/tmp/a b.py") == "file:///tmp/a%20b.py"


def test_an_edit_moves_what_stands_behind_it() -> None:
    from d9mlint.server.engine import difference

    edit = difference("abc def ghi", "abc xx def ghi")
    assert edit.moved(0, 3) == (0, 3) and edit.moved(8, 11) == (11, 14)
    assert difference("abc", "abc").moved(0, 3) == (0, 3)
    assert difference("aXb", "aYYb").moved(1, 2) is None
    assert difference("", "new").moved(0, 0) == (0, 0)


def test_after_edits_the_answer_is_that_of_a_run_from_scratch(program: Path) -> None:
    """Facts, imports and reports that are kept make no difference."""
    from d9mlint.config.settings import load_settings
    from d9mlint.pipeline import check
    from d9mlint.server.engine import Engine

    given = {"cache": False}
    engine = Engine(str(program), given)
    engine.complete(lambda: False)
    texts = {
        "layers.py": [
            NOISY,
            "import torch\n\n\ndef pool(x):\n    return x.cumsum(0).sum()\n",
            "def pool(x:\n",
            LAYERS,
        ],
        "train.py": [TRAIN.replace("    main()", "    pass"), "import layers\n" + TRAIN, TRAIN],
    }
    for name, versions in texts.items():
        for text in versions:
            path = f"{program}/{name}"
            engine.edit(path, text.encode())
            quick = engine.quick(path, lambda: False)
            assert quick is not None
            warm = engine.complete(lambda: False)
            cold = check(
                [str(program)], load_settings(str(program), overrides=given), overlay={path: text.encode()}
            )
            assert [i.finding for i in warm.items] == [i.finding for i in cold.items]
            assert [i.fingerprint for i in warm.items] == [i.fingerprint for i in cold.items]
            (program / name).write_text(text)


def test_an_edit_is_seen_through_the_modules_between_in_code_that_no_program_reaches(
    project: Project,
) -> None:
    from d9mlint.config.settings import load_settings
    from d9mlint.pipeline import check
    from d9mlint.server.engine import Engine

    root = project(
        {
            "flags.py": "FAST = True\n",
            "middle.py": "from flags import FAST\n",
            "last.py": (
                "import torch\nfrom middle import FAST\n\n\ndef setup():\n    torch.backends.cudnn.benchmark = FAST\n"
            ),
            "other.py": "import last\n\n\ndef unused():\n    last.setup()\n",
        }
    )
    given = {"cache": False}
    engine = Engine(str(root), given)
    found = []
    for text in ("FAST = True\n", "FAST = False\n", "FAST = True\n"):
        engine.edit(f"{root}/flags.py", text.encode())
        warm = engine.complete(lambda: False)
        (root / "flags.py").write_text(text)
        cold = check([str(root)], load_settings(str(root), overrides=given))
        assert [i.finding for i in warm.items] == [i.finding for i in cold.items]
        found.append([i.finding.code for i in warm.items])
    assert found[0] == found[2] == ["DET301"] and found[1] == []


PROGRAMS = {
    "train.py": TRAIN,
    "layers.py": LAYERS + "\n\ndef spare(x):\n    y = x + 1\n    z = y + 1\n    w = z + 1\n    return w\n",
    "other.py": "import random\n\nimport layers\n\nif __name__ == '__main__':\n    print(layers.pool(random.random()))\n",
}


@pytest.fixture
def made(project: Project, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str]]:
    """A project with two programs, and the names of the runs over programs that are made."""
    from d9mlint.interp.entry_run import Analyzer

    runs: list[str] = []
    real = Analyzer.run_entry_at

    def counted(self: Analyzer, index: int) -> Any:
        runs.append(self.project.entries[index].file.relative)
        return real(self, index)

    monkeypatch.setattr(Analyzer, "run_entry_at", counted)
    return project(PROGRAMS), runs


def test_an_edit_that_no_program_reads_makes_no_run_again(made: tuple[Path, list[str]]) -> None:
    """A comment, a function that nothing calls, a change that is undone, a line that is finished: nothing is run."""
    from d9mlint.server.engine import Engine

    root, runs = made
    engine = Engine(str(root), {"cache": False})
    engine.complete(lambda: False)
    assert sorted(runs) == ["other.py", "train.py"]
    path, text = f"{root}/layers.py", PROGRAMS["layers.py"]
    for new in (
        "# A comment.\n" + text,
        text.replace("y = x + 1", "y = x + 2"),
        text,
        text.replace("x.sum()", "x.mean("),
        text,
    ):
        runs.clear()
        engine.edit(path, new.encode())
        engine.complete(lambda: False)
        broken = "x.mean(\n" in new
        assert sorted(runs) == (["other.py", "train.py"] if broken else [])
    runs.clear()
    engine.edit(path, text.replace("x.sum()", "x.mean()").encode())
    engine.complete(lambda: False)
    assert sorted(runs) == ["other.py", "train.py"]
    # Only the program that reads the change.
    runs.clear()
    engine.edit(f"{root}/train.py", TRAIN.replace("main()", "main()  # now").encode())
    engine.edit(f"{root}/other.py", PROGRAMS["other.py"].replace("random()", "choice([1])").encode())
    engine.complete(lambda: False)
    assert runs == ["other.py"]


def test_a_long_run_over_unreached_code_waits_until_typing_pauses(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from d9mlint.server import engine as server

    unused = "import torch\n\ndef spare(x, i):\n    y = x\n    z = y\n"
    unused += "    torch.backends.cudnn.benchmark = True\n    return z\n"
    caller = "def more(x, i):\n    from unused import spare\n\n    return spare(x, i)\n"
    root = project({**PROGRAMS, "unused.py": unused, "more.py": caller})
    path = str(root / "unused.py")
    engine = server.Engine(str(root), {"cache": False})
    engine.complete(lambda: False)
    monkeypatch.setattr(server, "UNREACHED_SECONDS", -1.0)
    engine.edit(path, unused.replace("    z = y", "\n    z = x.put_(i, y)").encode())
    quick = engine.quick(path, lambda: False) or ()
    text = engine.source(path)
    assert text is not None
    assert [(i.finding.code, text.row_column(i.finding.start)[0]) for i in quick] == [("DET301", 7)]
    assert len([i for i in engine.complete(lambda: False).items if i.finding.path == path]) > 1


def test_any_sequence_of_edits_gives_the_answer_of_a_run_from_scratch(made: tuple[Path, list[str]]) -> None:
    """Whatever was kept, moved, outdated and taken back on the way."""
    import random

    from d9mlint.config.settings import load_settings
    from d9mlint.pipeline import check
    from d9mlint.server.engine import Engine

    root, _ = made
    engine = Engine(str(root), {"cache": False})
    engine.complete(lambda: False)
    changes: list[tuple[str, Callable[[str], str]]] = [
        ("layers.py", lambda t: "# One line more.\n" + t),
        ("layers.py", lambda t: t.replace("x + 1", "x + torch.rand(1)")),
        ("layers.py", lambda t: t.replace("def spare(x):", "def spare(x:")),
        ("layers.py", lambda t: t.replace("def pool", "def more(x):\n    return x\n\n\ndef pool")),
        ("layers.py", lambda t: NOISY),
        ("layers.py", lambda t: PROGRAMS["layers.py"]),
        ("train.py", lambda t: "\n" + t),
        ("train.py", lambda t: t.replace("if __name__", "if __name", 1)),
        ("train.py", lambda t: PROGRAMS["train.py"]),
        ("other.py", lambda t: t.replace("random.random()", "random.choice([1, 2])")),
        ("other.py", lambda t: PROGRAMS["other.py"]),
    ]
    for seed in range(2):
        draw = random.Random(seed)
        for _ in range(16):
            name, change = draw.choice(changes)
            path = root / name
            path.write_text(change(path.read_text()))
            engine.edit(str(path), None)
            engine.quick(str(path), lambda: False)
            if draw.random() < 0.4:
                continue
            cold = check([str(root)], load_settings(str(root), overrides={"cache": False}))
            warm = engine.complete(lambda: False)
            assert [i.finding for i in warm.items] == [i.finding for i in cold.items]
            again = engine.quick(str(path), lambda: False)
            # A fix of a whole program knows the findings of other files too.
            assert [(i.finding.message, i.finding.start, i.fingerprint) for i in again or ()] == [
                (i.finding.message, i.finding.start, i.fingerprint)
                for i in cold.items
                if i.finding.path == str(path)
            ]


def test_a_newer_edit_ends_what_is_being_computed(program: Path) -> None:
    from d9mlint.server.engine import Cancelled, Engine

    engine = Engine(str(program), {"cache": False})
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 5

    with pytest.raises(Cancelled):
        engine.complete(stop)
    found = engine.complete(lambda: False)
    assert {i.finding.code for i in found.items} == {"DET101", "DET301", "DET302"}
