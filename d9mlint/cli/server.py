"""``d9mlint server``: the language server, over standard input and output."""

from __future__ import annotations

from importlib.util import find_spec

import click

from d9mlint.base.errors import UsageError

MISSING = "The language server needs pygls. Install it with: pip install 'pygls>=2'"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--stdio", is_flag=True, help="Use standard input and output (default).")
def server(stdio: bool) -> int:
    """Run the language server for editors, over standard input and output.

    It shows findings as you type, offers fixes and comments that ignore a finding, and explains rules. It needs
    pygls, which the extra `lsp` installs.
    """
    if find_spec("pygls") is None or find_spec("lsprotocol") is None:
        raise UsageError(MISSING)
    try:
        from d9mlint.server.app import make_server
    except ImportError as error:
        raise UsageError(f"{MISSING} ({error})") from error
    make_server().start_io()
    return 0
