"""Who the caller asks to be taken for, as the headers that say so."""

import re
from urllib.parse import quote

from kubectl_cgaudit.collect.kubeconfig import Connection, Fields
from kubectl_cgaudit.errors import ClusterError, UsageError

_CONTROL = re.compile("[\\x00-\\x08\\x0a-\\x1f\\x7f]")
_CORRECT = "correct its user entry"


def headers(connection: Connection, user: Fields) -> list[tuple[str, str]]:
    """Those for the flags, or else for the user's entry in the kubeconfig.

    Raises UsageError or ClusterError, by where it comes from, for what no header can hold.
    """
    name = connection.as_user or user.get("as")
    groups = connection.as_groups or _texts("as-groups", user.get("as-groups"))
    extra = user.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise ClusterError(f"as-user-extra in the kubeconfig is no mapping of lists; {_CORRECT}")
    if not name:
        if groups or extra or user.get("as-uid"):
            raise UsageError("a group cannot be impersonated without a user; add --as USER")
        return []
    found = [("Impersonate-User", str(name))]
    found += [("Impersonate-Group", str(group)) for group in groups]
    if user.get("as-uid"):
        found.append(("Impersonate-Uid", str(user["as-uid"])))
    for key, values in extra.items():
        field = "Impersonate-Extra-" + quote(str(key), safe="!#$&'*+^`|")
        found += [(field, value) for value in _texts("as-user-extra", values)]
    flags = (connection.as_user, *connection.as_groups)
    for _, value in found:
        if _CONTROL.search(value):
            what = f"{value!r} holds a control character, which no name has"
            raise (
                UsageError(f"{what}; correct --as or --as-group")
                if value in flags
                else ClusterError(f"{what}, and the kubeconfig impersonates it; {_CORRECT}")
            )
    return found


def _texts(field: str, value: object) -> list[str]:
    """A list of texts; a text alone would be taken for a list of its letters."""
    if value is not None and not isinstance(value, list):
        raise ClusterError(f"{field} in the kubeconfig is no list; {_CORRECT}")
    return [str(each) for each in value or ()]
