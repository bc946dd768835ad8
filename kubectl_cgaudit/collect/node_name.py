"""Names of nodes, which come from the cluster and end in paths of files and of URLs."""

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)


def is_name(node: str) -> bool:
    """Whether it can stand in a path: quoting would leave `..` as it is."""
    return bool(_NAME.fullmatch(node)) and ".." not in node
