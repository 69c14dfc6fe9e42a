"""The program: ``python -m d9mlint`` and the ``d9mlint`` script."""

import sys

if __name__ == "__main__" and sys.path and not __file__.startswith(sys.path[0] + "/"):
    # ``-m`` puts the working directory first: a linted random.py must not become the standard library's.
    del sys.path[0]

import os

from d9mlint import __version__


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:] == ["--version"]:
        # Asked for by scripts and editors at every start: nothing is imported for it.
        print(f"d9mlint {__version__}")
        return
    from d9mlint.cli.app import run

    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
