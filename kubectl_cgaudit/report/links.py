"""Where the project's pages are."""

import re

HOMEPAGE = "https://github.com/kubectl-cgaudit/kubectl-cgaudit"
DOCS = f"{HOMEPAGE}/blob/main/docs"
METHOD = f"{DOCS}/method.md"
LIMITS = f"{DOCS}/limits.md"
_RULE = re.compile(r"CGA[0-9]{3}")


def finding_page(rule: str) -> str | None:
    """The page that explains a rule; None for what is no rule of ours, as audits are also read from files."""
    return f"{DOCS}/findings/{rule}.md" if _RULE.fullmatch(rule) else None
