"""An action that may help, before it is proven."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from kubectl_cgaudit.actions.change import Change
from kubectl_cgaudit.audit.model import Action, ActionKind

_WHO: Mapping[ActionKind, Literal["node owners", "workload owners"]] = {
    "inspect": "node owners",
    "node": "node owners",
    "workload": "workload owners",
}


class Candidate(Struct, frozen=True):
    """A way to carry out an action. Of those with one id the first that helps is the action, the others are alternatives."""

    action: Action
    change: Change
    place: int = -1
    """The node whose CPU is told, by its place in the tables; -1 for none."""
    case: int = 0
    """The case of it that is told."""
    pod: int = -1
    """The row of the pod that is told; -1 for none."""


def action(
    kind: ActionKind,
    identity: str,
    target: Mapping[str, Any],
    change: Mapping[str, Any],
    run: Sequence[str],
    detail: Mapping[str, Any],
) -> Action:
    """Return an action without words and effect."""
    return Action(
        id=identity,
        kind=kind,
        title="",
        target=dict(target),
        change=dict(change),
        run=tuple(run),
        when="",
        effect=None,
        cost="",
        undo="",
        alternatives=(),
        who=_WHO[kind],
        detail=dict(detail),
    )
