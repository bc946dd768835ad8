"""Parse what a kubelet answers: Prometheus text and /configz."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import quantity
from kubectl_cgaudit.collect.model import KubeletConfig
from kubectl_cgaudit.errors import InputError

_SHARES = "container_spec_cpu_shares"
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
_DURATION = re.compile(r"((?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:h|ms|m|us|µs|μs|ns|s)){1,8}", re.ASCII)
_DURATION_PART = re.compile(r"([\d.]+)([^\d.]+)")
_US = {
    "h": Decimal(3_600_000_000),
    "m": Decimal(60_000_000),
    "s": Decimal(1_000_000),
    "ms": Decimal(1000),
    **dict.fromkeys(("us", "µs", "μs"), Decimal(1)),
    "ns": Decimal("0.001"),
}
_LONGEST_PERIOD_US = 1_000_000

_Row = tuple[dict[str, str], float]


class _Kubelet(Struct, rename="camel"):
    """The fields of a KubeletConfiguration. The kubelet has put its defaults in and leaves out what is empty."""

    cgroup_driver: str | None = None
    cgroups_per_qos: bool | None = msgspec.field(default=None, name="cgroupsPerQOS")
    enforce_node_allocatable: list[str] | None = None
    system_reserved_cgroup: str | None = None
    kube_reserved_cgroup: str | None = None
    system_reserved: dict[str, str] | None = None
    kube_reserved: dict[str, str] | None = None
    cpu_cfs_quota: bool | None = msgspec.field(default=None, name="cpuCFSQuota")
    cpu_cfs_quota_period: str | None = msgspec.field(default=None, name="cpuCFSQuotaPeriod")
    cpu_manager_policy: str | None = None


class _Configz(Struct):
    kubeletconfig: _Kubelet


def shares(text: bytes) -> dict[str, int]:
    """container_spec_cpu_shares by cgroup path. Raises InputError when the text is damaged."""
    found: dict[str, int] = {}
    for labels, value in _rows(_checked(text), _SHARES):
        path = labels.get("id", "")
        if not path.startswith("/"):
            continue
        if not (value.is_integer() and 0 <= value <= _LARGEST):
            raise InputError(f"{_SHARES} of {_shown(path)} is {value:g}, which is no number of shares; {_AGAIN}")
        if found.setdefault(path, int(value)) != value:
            raise InputError(f"{_SHARES} of {_shown(path)} is both {found[path]} and {value:g}; {_AGAIN}")
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
    """Whether the shares come from the pods' specs and not from the kernel. Raises InputError as the others do."""
    rows = _rows(_checked(text), "kubelet_metrics_provider")
    return any(row.get("provider") == "cri" and value == 1 for row, value in rows)


def config(body: bytes) -> KubeletConfig:
    """What /configz says. Raises InputError when it is none."""
    try:
        said = msgspec.json.decode(body, type=_Configz).kubeletconfig
    except msgspec.ValidationError as error:
        raise InputError(f"the answer is no kubelet configuration: {error}; {_AGAIN}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"the answer is not JSON but {_shown(_excerpt(body))}; {_AGAIN}") from None
    return KubeletConfig(
        cgroup_driver=said.cgroup_driver or None,
        cgroups_per_qos=said.cgroups_per_qos is not False,
        # The kubelet turns an absent list into [pods] before it answers, so here absent means that it is empty.
        enforce_node_allocatable=tuple(said.enforce_node_allocatable or ()),
        system_reserved_cgroup=said.system_reserved_cgroup or None,
        kube_reserved_cgroup=said.kube_reserved_cgroup or None,
        system_reserved_milli=_cpu("systemReserved", said.system_reserved),
        kube_reserved_milli=_cpu("kubeReserved", said.kube_reserved),
        cpu_cfs_quota=said.cpu_cfs_quota is not False,
        cpu_cfs_quota_period_us=_period_us(said.cpu_cfs_quota_period or "100ms"),
        cpu_manager_policy=said.cpu_manager_policy or None,
    )


def _cpu(key: str, reserved: dict[str, str] | None) -> int | None:
    if not reserved or "cpu" not in reserved:
        return None
    try:
        return quantity.milli(reserved["cpu"])
    except InputError as error:
        raise InputError(f"{key}.cpu: {error}") from None


def _period_us(text: str) -> int:
    microseconds = Decimal(0)
    if len(text) <= _SHOWN and _DURATION.fullmatch(text):
        microseconds = sum((Decimal(n) * _US[unit] for n, unit in _DURATION_PART.findall(text)), Decimal(0))
    if not 1 <= microseconds <= _LONGEST_PERIOD_US:
        raise InputError(f"cpuCFSQuotaPeriod {_shown(text)} is no duration from 1us to 1s; {_AGAIN}")
    return int(microseconds)


def _checked(text: bytes) -> str:
    """The text, with a line feed before each line. Both ends are looked at: there logins and broken transfers show."""
    if not text.strip():
        raise InputError(f"the metrics are empty; {_AGAIN}")
    try:
        decoded = "\n" + text.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the metrics are not UTF-8 (byte {error.start}); {_AGAIN}") from None
    if _parse(_first_line(decoded)) is None:
        raise InputError(f"the answer is no Prometheus text but {_shown(_excerpt(text))}; {_AGAIN}")
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


def _excerpt(body: bytes) -> str:
    return body[:_SHOWN].decode("utf-8", "replace")


def _shown(text: str) -> str:
    return repr(text[:_SHOWN])
