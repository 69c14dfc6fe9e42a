"""The server as editors see it: what they send, and what they learn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from d9mlint import __version__
from d9mlint.base.source import detect_encoding
from d9mlint.report import rule_page
from d9mlint.report.common import count
from d9mlint.server.convert import FIX_ALL, Converter, path_of, uri_of
from d9mlint.server.work import Worker

if TYPE_CHECKING:
    from d9mlint.base.coverage import Coverage
    from d9mlint.pipeline import Item
    from d9mlint.server.engine import Engine

SHOW_COVERAGE = "d9mlint.showCoverage"
WATCHED = (
    "**/*.py",
    "**/*.ipynb",
    "**/pyproject.toml",
    "**/d9mlint.toml",
    "**/*requirements*.txt",
    "**/setup.cfg",
    "**/environment.{yml,yaml}",
    "**/{uv,poetry,pdm}.lock",
    "**/*.{yaml,yml,json}",
)
"""Files whose changes on disk the client is asked to report."""
MOST_GAPS = 20


class Server(LanguageServer):
    """The language server of d9mlint."""

    def __init__(self) -> None:
        super().__init__("d9mlint", __version__)
        self.worker = Worker(self._publish, self._say, self._settled)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.versions: dict[str, int | None] = {}

    # ------------------------------------------------------------------------------- from the thread

    def _later(self, function: Any, *arguments: Any) -> None:
        """Call something in the thread that writes to the client."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _publish(self, path: str, items: tuple[Item, ...], engine: Engine) -> None:
        converter = Converter(lambda name: engine.source(name), self._encoding())
        found = [d for item in items if (d := converter.diagnostic(item)) is not None]
        # A version is sent only with the text that was analyzed.
        version = self.versions.get(path) if self.worker.is_current(path) else None
        params = lsp.PublishDiagnosticsParams(uri_of(path), found, version)
        self._later(self.text_document_publish_diagnostics, params)

    def _say(self, message: str) -> None:
        self._later(self.window_show_message, lsp.ShowMessageParams(lsp.MessageType.Error, message))

    def _settled(self) -> None:
        """Everything is known: what is shown at entry points may have changed."""
        capabilities = self.client_capabilities.workspace
        lens = capabilities.code_lens if capabilities is not None else None
        if lens is not None and lens.refresh_support:
            self._later(lambda: self.workspace_code_lens_refresh(None))

    def _encoding(self) -> str:
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    def converter(self) -> Converter:
        """Places as this client counts them."""
        return Converter(self.worker.source, self._encoding())

    # ------------------------------------------------------------------------------- from the client

    def begin(self) -> None:
        """The client is ready: analyze its folders."""
        self._loop = asyncio.get_running_loop()
        folders = [path_of(uri) for uri in self.workspace.folders]
        if not folders and self.workspace.root_path:
            folders = [self.workspace.root_path]
        self.worker.folders([path for path in folders if path], [])
        self.worker.start()
        workspace = self.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is not None and watching.dynamic_registration:
            watchers = [lsp.FileSystemWatcher(pattern) for pattern in WATCHED]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = lsp.Registration("d9mlint-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            self.client_register_capability(lsp.RegistrationParams([registration]))

    def text(self, uri: str) -> None:
        """A document has another text."""
        path = path_of(uri)
        if path is None or not path.endswith(".py"):
            return
        document = self.workspace.get_text_document(uri)
        self.versions[path] = document.version
        self.worker.opened(path, _encoded(document.source))

    def closed(self, uri: str) -> None:
        """A document is no longer open."""
        path = path_of(uri)
        if path is not None and path.endswith(".py"):
            self.versions.pop(path, None)
            self.worker.closed(path)


def _encoded(text: str) -> bytes:
    """A text as the file would hold it: in the encoding that its first lines declare."""
    plain = text.encode("utf-8", "surrogatepass")
    encoding, _ = detect_encoding(plain)
    try:
        return text.encode(encoding)
    except (UnicodeError, LookupError):
        return plain


def settings_of(options: Any) -> dict[str, Any]:
    """The settings among initialization options or a changed configuration, by their keys."""
    from d9mlint.config.settings import KEYS

    found = options if isinstance(options, Mapping) else {}
    if isinstance(found.get("d9mlint"), Mapping):
        found = found["d9mlint"]
    if isinstance(found.get("settings"), Mapping):
        found = found["settings"]
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in found.items() if key in KEYS
    }


def make_server() -> Server:
    """The server with everything it answers."""
    server = Server()
    _lifecycle(server)
    _documents(server)
    _questions(server)
    return server


def _lifecycle(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.worker.settings = settings_of(params.initialization_options)

    @server.feature(lsp.INITIALIZED)
    def initialized(params: lsp.InitializedParams) -> None:
        server.begin()

    @server.feature(lsp.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.worker.end()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configuration(params: lsp.DidChangeConfigurationParams) -> None:
        if chosen := settings_of(params.settings):
            server.worker.configure(chosen)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        added = [path for one in params.event.added if (path := path_of(one.uri))]
        removed = [path for one in params.event.removed if (path := path_of(one.uri))]
        server.worker.folders(added, removed)


def _documents(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.text(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.text(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None and not path.endswith(".py"):
            server.worker.changed_on_disk([path])

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.worker.changed_on_disk([path for one in params.changes if (path := path_of(one.uri))])


def _questions(server: Server) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, FIX_ALL, lsp.CodeActionKind.SourceFixAll]),
    )
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        path = path_of(params.text_document.uri)
        if path is None:
            return []
        items = list(server.worker.items(path))
        converter = server.converter()
        only = params.context.only
        found: list[lsp.CodeAction] = []
        if _wanted(only, lsp.CodeActionKind.QuickFix.value):
            touched = [item for item in items if _touches(converter, item, params.range)]
            found += converter.actions(touched, list(params.context.diagnostics))
        if _wanted(only, FIX_ALL):
            every = converter.fix_all(path, items)
            found += [every] if every is not None else []
        return found

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        path = path_of(params.text_document.uri)
        if path is None:
            return None
        converter = server.converter()
        here = lsp.Range(params.position, params.position)
        items = [item for item in server.worker.items(path) if _touches(converter, item, here)]
        if not items:
            return None
        pages = dict.fromkeys(rule_page.markdown(item.rule) for item in items)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(pages)))

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        path = path_of(params.text_document.uri)
        if path is None:
            return []
        top = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        return [
            lsp.CodeLens(top, lsp.Command(_covered(one), SHOW_COVERAGE, arguments=[path, one.function]))
            for one in server.worker.coverage(path)
        ]

    @server.command(SHOW_COVERAGE)
    # pygls looks for its server among the types of parameters. Any is no class before Python 3.11, and the server is
    # an object; some clients send a list.
    def coverage(*arguments: str) -> None:
        given: Sequence[Any] = arguments
        if len(given) == 1 and isinstance(given[0], list):
            given = given[0]
        path, function = (*given, "")[:2] if given else ("", "")
        for one in server.worker.coverage(str(path)):
            if one.function == function:
                text = "\n".join(_gaps(server, one)) or "Everything was followed."
                server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, text))


def _wanted(only: Any, kind: str) -> bool:
    """Whether a client asks for a kind of action: it names kinds, or kinds of kinds."""
    names = [str(getattr(one, "value", one)) for one in only or ()]
    return not names or any(kind == name or kind.startswith(name + ".") for name in names)


def _touches(converter: Converter, item: Item, wanted: lsp.Range) -> bool:
    source = converter.lookup(item.finding.path)
    if source is None:
        return False
    own = converter.range(source, item.finding.start, item.finding.end)
    first, last = (own.start.line, own.start.character), (own.end.line, own.end.character)
    start, end = (wanted.start.line, wanted.start.character), (wanted.end.line, wanted.end.character)
    return first <= end and last >= start


def _covered(one: Coverage) -> str:
    name = f" of {one.function}()" if one.function else ""
    gaps = f", {count(len(one.gaps), 'place')} not followed" if one.gaps else ""
    total = one.followed + one.not_followed
    return f"d9mlint: entry point{name}, {one.followed} of {count(total, 'statement')} analyzed{gaps}"


def _gaps(server: Server, one: Coverage) -> list[str]:
    lines: list[str] = []
    for gap in one.gaps[:MOST_GAPS]:
        source = server.worker.source(gap.path)
        row = source.row_column(gap.start)[0] if source is not None else 1
        lines.append(f"{gap.path}:{row}: {gap.text}")
    if len(one.gaps) > MOST_GAPS:
        lines.append(f"and {len(one.gaps) - MOST_GAPS} more (`d9mlint graph --coverage`)")
    return lines
