"""What a reader of a report may choose."""

from typing import Protocol

from msgspec import Struct

from kubectl_cgaudit.audit.model import Audit


class Options(Struct, frozen=True):
    """How a report is written."""

    width: int = 100
    """Columns of a terminal."""
    colour: bool = False
    wide: bool = False
    """Whether everything is shown where a format leaves out the less important."""


class Rendered(Protocol):
    """What a page is made from: an audit that was run or saved."""

    @property
    def audit(self) -> Audit:
        """The audit."""
