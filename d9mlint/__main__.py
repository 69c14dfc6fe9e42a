"""The program: ``python -m d9mlint`` and the ``d9mlint`` script."""

import sys

if __name__ == "__main__" and sys.path and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # ``-m`` puts the working directory first, and what is linted there is not imported: not its random.py for the
    # standard library's, and not its click.py. The package's own modules are found without it.
    del sys.path[0]

import gc
import os

from d9mlint import __version__

COLLECT_AFTER = 20_000
"""New objects after which Python looks for garbage, instead of 700."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    _prepare()
    try:
        if sys.argv[1:] == ["--version"]:
            # Asked for by scripts and editors at every start: nothing is imported for it.
            print(f"d9mlint {__version__}")
            sys.stdout.flush()
            return
        # Facts are many objects and no garbage: looking for some among them costs a tenth of a run.
        gc.set_threshold(COLLECT_AFTER)
        from d9mlint.cli.app import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain when it flushes at its end.
        _output_is_broken("")
        code = 141
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        code = 130
    except OSError as error:
        _output_is_broken(f"error: Standard output cannot be written: {error.strerror or error}.")
        code = 2
    except (ImportError, MemoryError) as error:
        # Too little memory shows itself as either.
        print(f"error: d9mlint cannot be started here: {error or type(error).__name__}.", file=sys.stderr)
        code = 2
    sys.exit(code)


def _output_is_broken(message: str) -> None:
    from d9mlint.base.terminal import close_stream, say

    if message:
        say(message)
    close_stream(1)


def _prepare() -> None:
    """Make names of files and output mean the same in every locale, and standard streams exist."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        # Names would be other strings, in another order. Python can only be set to UTF-8 at its start.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # A file that is opened later must not take the number of a closed stream.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    main()
