"""The auth-provider oidc of a kubeconfig. Its token is never renewed here: an issuer may take a refresh token once only, and
whoever renews has to write the new one into the kubeconfig, as kubectl does.
"""

import base64
from typing import Any

import msgspec

from kubectl_cgaudit.errors import ClusterError

_EARLY_SECONDS = 10
"""kubectl renews so long before the end."""
_RENEW = "run any kubectl command to renew it, then try again"


class _Claims(msgspec.Struct):
    exp: float | None = None


def token(config: dict[str, Any], where: str, now: float) -> str:
    """The id-token as it stands in the kubeconfig. Raises ClusterError where there is none, or it ends before `now`."""
    given = str(config.get("id-token") or "")
    if not given:
        raise ClusterError(f"the auth-provider of {where} has no id-token; {_RENEW}")
    ends = _end(given)
    if ends is not None and ends <= now + _EARLY_SECONDS:
        raise ClusterError(f"the id-token of {where} has expired; {_RENEW}")
    return given


def _end(given: str) -> float | None:
    """When a token ends; None where that cannot be seen, and the server has to judge."""
    payload = given.split(".")[1:2]
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(payload[0] + "=="), type=_Claims).exp
    except (IndexError, ValueError, RecursionError):
        return None
