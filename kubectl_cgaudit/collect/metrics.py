"""Parse the Prometheus text of a kubelet's /metrics and /metrics/cadvisor."""

import re
from collections.abc import Iterator
from typing import Literal

from kubectl_cgaudit.collect.http import excerpt
from kubectl_cgaudit.errors import InputError

_SHARES, _QUOTA, _PERIOD = "container_spec_cpu_shares", "container_spec_cpu_quota", "container_spec_cpu_period"
_AGAIN = "ask again"
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_TEXT = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_HEAD = re.compile(rf"{_NAME}(?:[ \t]*(\{{)|(?=[ \t]))")
_LABEL = re.compile(rf"[ \t]*({_NAME})[ \t]*=[ \t]*({_TEXT})[ \t]*(,|(?=\}}))")
_CLOSE = re.compile(r"[ \t]*\}")
_VALUE = re.compile(
    r"[ \t]*([+-]?(?:(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?|Inf|NaN))(?:[ \t]+-?\d{1,20})?[ \t\r]*",
    re.ASCII,
)
_ESCAPE = re.compile(r"\\(.)")
_UNESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_MOST_ROWS = 100_000
_LARGEST = 2**53
_SHOWN = 60
_Row = tuple[dict[str, str], float]


def shares(text: bytes) -> dict[str, int]:
    """container_spec_cpu_shares by cgroup path. Raises InputError when the text is damaged."""
    return _by_path(_checked(text), _SHARES, "shares")


def quotas(text: bytes) -> dict[str, tuple[int, int]] | None:
    """Return container_spec_cpu_quota and _period by cgroup path; None where no row has a quota. Raises InputError as `shares`.

    A cgroup without a quota has no row.
    """
    checked = _checked(text)
    found = _by_path(checked, _QUOTA, "microseconds")
    if not found:
        return None
    periods = _by_path(checked, _PERIOD, "microseconds")
    return {path: (quota, periods[path]) for path, quota in found.items() if periods.get(path)}


def _by_path(text: str, name: str, what: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for labels, value in _rows(text, name):
        path = labels.get("id", "")
        if not path.startswith("/"):
            continue
        if not (value.is_integer() and 0 <= value <= _LARGEST):
            raise InputError(f"{name} of {_shown(path)} is {value:g}, which is no number of {what}; {_AGAIN}")
        if found.setdefault(path, int(value)) != value:
            raise InputError(f"{name} of {_shown(path)} is both {found[path]} and {value:g}; {_AGAIN}")
    return found


def pods_named(text: bytes) -> set[tuple[str, str]]:
    """Namespace and name of the pods whose cgroups have shares. Raises InputError when the text is damaged."""
    rows = _rows(_checked(text), _SHARES)
    return {(row["namespace"], row["pod"]) for row, _ in rows if row.get("namespace") and row.get("pod")}


def node_named(text: bytes) -> str | None:
    """The node whose kubelet wrote this /metrics, if it says so. Raises InputError when the text is damaged."""
    return next((row.get("node") for row, value in _rows(_checked(text), "kubelet_node_name") if value), None)


def cgroup_version(text: bytes) -> Literal["v1", "v2"] | None:
    """`v1` or `v2` of kubelet_cgroup_version; None before kubelet 1.31. Raises InputError when the text is damaged."""
    values = {value for _, value in _rows(_checked(text), "kubelet_cgroup_version")}
    if not values:
        return None
    if values == {1.0}:
        return "v1"
    if values == {2.0}:
        return "v2"
    listed = ", ".join(f"{value:g}" for value in sorted(values)[:3])
    raise InputError(f"kubelet_cgroup_version is {listed} and not 1 or 2; {_AGAIN}")


def stats_from_spec(text: bytes) -> bool:
    """Whether the shares come from the pods' specs and not from the kernel. Raises InputError as the others do.

    Older kubelets do not name the provider; there the feature gate by which they change it counts.
    """
    providers = [(row.get("provider"), value) for row, value in _rows(_checked(text), "kubelet_metrics_provider")]
    return ("cri", 1.0) in providers if providers else bool(_gate(text, "PodAndContainerStatsFromCRI"))


def pod_level(text: bytes) -> bool | None:
    """Whether the feature gate PodLevelResources is on; None where it is not told. Raises InputError as the others do."""
    return _gate(text, "PodLevelResources")


def _gate(text: bytes, name: str) -> bool | None:
    rows = _rows(_checked(text), "kubernetes_feature_enabled")
    return next((value == 1 for row, value in rows if row.get("name") == name), None)


def last_named(text: bytes) -> str | None:
    """The metric of the last line; None where that is no row."""
    line = text.rstrip().rpartition(b"\n")[2].decode(errors="replace")
    head = _HEAD.match(line)
    return re.split(r"[{ \t]", head[0], maxsplit=1)[0] if head and _parse(line) else None


def _checked(text: bytes) -> str:
    """The text, with a line feed before each line. Both ends are looked at: there logins and broken transfers show."""
    if not text.strip():
        raise InputError(f"the metrics are empty; {_AGAIN}")
    try:
        decoded = "\n" + text.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the metrics are not UTF-8 (byte {error.start}); {_AGAIN}") from None
    if _parse(_first_line(decoded)) is None:
        raise InputError(f"the answer is no Prometheus text but {_shown(excerpt(text))}; {_AGAIN}")
    last = decoded.rstrip().rpartition("\n")[2]
    whole = decoded.endswith("\n") and not last.startswith(("# HELP", "# TYPE"))
    if not whole or (last[0] != "#" and _parse(last) is None):
        raise InputError(f"the metrics break off after {_shown(last[-_SHOWN:])}; {_AGAIN}")
    return decoded


def _first_line(text: str) -> str:
    """The first line that is neither empty nor a comment."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if end > at and text[at] not in "#\r":
            return text[at:end]
        at = end + 1
    return ""


def _rows(text: str, name: str) -> Iterator[_Row]:
    """The labels and the value of each row of a metric."""
    needle, at, count = f"\n{name}", 0, 0
    while (at := text.find(needle, at)) >= 0:
        end = text.find("\n", at + 1)
        begin, at = at + 1, end
        if text[begin + len(name)] not in "{ \t":
            continue
        row = _parse(text[begin:end])
        if row is None:
            line = text.count("\n", 0, begin)
            raise InputError(f"line {line} of the metrics is no row of {name}: {_shown(text[begin:end])}; {_AGAIN}")
        count += 1
        if count > _MOST_ROWS:
            raise InputError(f"the metrics have more than {_MOST_ROWS} rows of {name}; {_AGAIN}")
        yield row


def _parse(line: str) -> _Row | None:
    head = _HEAD.match(line)
    if not head:
        return None
    labels, at = {}, head.end()
    if head[1]:
        while label := _LABEL.match(line, at):
            labels[label[1]] = _unescape(label[2][1:-1])
            at = label.end()
        close = _CLOSE.match(line, at)
        if not close:
            return None
        at = close.end()
    value = _VALUE.fullmatch(line, at)
    return (labels, float(value[1])) if value else None


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[0]), text) if "\\" in text else text


def _shown(text: str) -> str:
    return repr(text[:_SHOWN])
