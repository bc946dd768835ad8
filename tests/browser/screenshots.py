"""python -m tests.browser.screenshots REPORT.html OUTDIR: the report as desktop, phone, dark and printed pictures."""

import sys
from pathlib import Path

from tests.browser import tools


def take(report: Path, folder: Path) -> list[Path]:
    """Writes the pictures; the same report, Chromium and fonts give the same bytes. Raises tools.Missing."""
    found = tools.find()
    names = tools.run("shots.mjs", found.chromium, str(report.resolve()), str(folder.resolve()))
    return [folder / name for name in names.split()]


def main(arguments: list[str]) -> int:
    """The command."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for picture in take(Path(arguments[0]), Path(arguments[1])):
            print(picture)
    except tools.Missing as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
