"""The tables and sections of a Markdown report."""


def tables(text: str) -> list[list[str]]:
    """Each table's lines."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


def section(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
