"""Where the command begins, also as `python -m kubectl_cgaudit`: nothing is imported before Ctrl-C can be answered."""

import sys


def main() -> None:
    """Run the command and exit with its code; 130 when it is interrupted before it has begun."""
    try:
        from kubectl_cgaudit.cli.main import main as command
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("error: interrupted before anything was done\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
