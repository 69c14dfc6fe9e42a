"""``python -m d9mlint.verify ARGS`` is ``d9mlint verify ARGS``; with ``--collectives``, under torchrun, a rank."""

import sys

if __name__ == "__main__" and sys.path and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # As in d9mlint/__main__.py: what is linted is not imported, nor is its __future__.py before this line.
    del sys.path[0]


def main() -> int:
    """Run, and return the exit code."""
    arguments = sys.argv[1:]
    if "--collectives" in arguments and not {"-h", "--help"} & set(arguments):
        # Under torchrun; nothing of the rest of the command line is imported in a rank.
        from d9mlint.verify import collectives

        arguments.remove("--collectives")
        return collectives.main(arguments)
    from d9mlint.cli.app import run

    return run(["verify", *arguments])


if __name__ == "__main__":
    sys.exit(main())
