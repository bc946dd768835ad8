"""What a policy file says."""

from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Finding, Severity

Level = Severity | Literal["off"]
"""off: the rule's findings are excepted, which every report shows."""


class Match(Struct, frozen=True):
    """Globs; None matches everything, also what is about something else."""

    namespace: str | None = None
    kind: str | None = None
    name: str | None = None
    node: str | None = None

    def fits(self, finding: Finding) -> bool:
        """Whether a finding is about what this speaks of."""
        about = finding.subject
        is_node = about.kind == "node"
        asked = (
            (self.namespace, about.namespace),
            (self.kind, about.workload_kind),
            (self.name, None if is_node else about.name),
            (self.node, about.name if is_node else None),
        )
        return all(glob is None or (value is not None and fnmatchcase(value, glob)) for glob, value in asked)

    def __str__(self) -> str:
        said = [f"{field} {value}" for field in self.__struct_fields__ if (value := getattr(self, field)) is not None]
        return ", ".join(said) or "everything"


class AgreedException(Struct, frozen=True):
    """Findings that somebody agreed to live with."""

    where: str
    """`policy.yaml exception 2`."""
    rules: tuple[str, ...]
    match: Match
    reason: str
    expires: date | None
    """The last day it holds."""

    def fits(self, finding: Finding) -> bool:
        """Whether it speaks of this finding."""
        return finding.rule in self.rules and self.match.fits(finding)


class Policy(Struct, frozen=True):
    """A policy file."""

    source: str
    thresholds: tuple[str, ...] = ()
    """`NAME=VALUE`, as --threshold takes them."""
    severities: tuple[tuple[str, Level], ...] = ()
    exceptions: tuple[AgreedException, ...] = ()

    @property
    def dated(self) -> bool:
        """Whether anything in it depends on the day."""
        return any(each.expires for each in self.exceptions)
