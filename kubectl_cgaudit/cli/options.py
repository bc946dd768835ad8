"""The flags, and what they are read into."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import click

from kubectl_cgaudit.cli.repeatable import Once, Repeatable
from kubectl_cgaudit.errors import UsageError

DEFAULT_TO = "v2+runtime"
F = TypeVar("F", bound=Callable[..., Any])
_LONGEST_SECONDS = 1e9
"""More fits into no timeout of the system."""


def to(what: str, default: str | None = None) -> Callable[[F], F]:
    """The flag --to, with this help."""
    instead = "combine targets with commas: v2,runc=1.3.6"
    shown = default is not None
    return click.option(
        "--to", cls=Once, instead=instead, default=default, show_default=shown, metavar="TARGET", help=what
    )


_WHAT_IF = click.option(
    "--what-if",
    "what_if",
    cls=Repeatable,
    multiple=True,
    metavar="ACTION|FILE",
    help="Predict with a change made after the move: an action's number or id, or a file of rules for nodes (as of --states) "
    "and of a workload's requests. Repeatable.",
)


def states(what: str, flag: str = "--states") -> Callable[[F], F]:
    """The flag --states, or another that names such a file, with this help."""
    instead = "write both lists of rules into one file, where later rules win"
    return click.option(flag, cls=Once, instead=instead, metavar="FILE", help=what)


_INPUT = (
    click.option(
        "-f",
        "--filename",
        "files",
        cls=Repeatable,
        multiple=True,
        metavar="FILE",
        help="Audit what kubectl get nodes,pods -A -o json (or yaml) printed instead of a live cluster; "
        "gzip is fine, - is standard input. Repeat for more files of one cluster: they are read together. "
        "CGAUDIT_MAX_INPUT_SIZE=16Gi allows more than 4Gi in one, unpacked.",
    ),
    states("What the nodes run: a YAML list of rules (see docs/states.md)."),
    click.option("-n", "--namespace", metavar="NS", help="Report only this namespace; the others' pods still compete."),
    click.option("-A", "--all-namespaces", is_flag=True, help="Report all namespaces (the default)."),
    click.option(
        "-l", "--selector", metavar="LABELS", help="Report only pods with these labels, such as app=web,tier!=db."
    ),
)
_CONNECTION = (
    click.option("--kubeconfig", metavar="FILE", help="The kubeconfig to use."),
    click.option("--context", metavar="NAME", help="The kubeconfig context to use."),
    click.option("--cluster", metavar="NAME", help="The kubeconfig cluster to use."),
    click.option("--user", metavar="NAME", help="The kubeconfig user to use."),
    click.option("--as", "as_user", metavar="USER", help="User to impersonate."),
    click.option(
        "--as-group",
        "as_groups",
        cls=Repeatable,
        multiple=True,
        metavar="GROUP",
        help="Group to impersonate; repeatable.",
    ),
    click.option(
        "--request-timeout", metavar="TIME", default="0", help="Give up on a request after this: 30s, 1m; 0 is 60s."
    ),
)
_KUBELET = (
    click.option(
        "--kubelet",
        cls=Once,
        instead="give one of them; saved answers of all nodes lie in one folder",
        metavar="proxy|direct|files:DIR",
        help="Also measure. proxy asks every kubelet through the API server, and needs nodes/proxy, which allows running "
        "commands in containers too. direct asks each at its own port, and needs nodes/metrics and nodes/configz. "
        "files:DIR reads saved answers.",
    ),
    click.option(
        "--kubelet-insecure-tls", is_flag=True, help="Do not verify the kubelets' certificates (--kubelet=direct)."
    ),
)
_TO = to(
    "Where the nodes go: v2, runtime, v2+runtime, kubelet=1.35, runc=1.3.6, crun=1.28, youki=0.5.7, platform=openshift-4.22, "
    "like=NODE that has moved already. Combine them with commas, or give a file in the syntax of --states.",
    DEFAULT_TO,
)


class Source(NamedTuple):
    """Where to read from, and what to report."""

    files: tuple[str, ...]
    states: str | None
    namespace: str | None
    selector: str | None
    kubeconfig: str | None
    context: str | None
    cluster: str | None
    user: str | None
    as_user: str | None
    as_groups: tuple[str, ...]
    timeout_seconds: float | None
    kubelet: str | None
    """`proxy`, `direct` or `files:DIR`."""
    kubelet_insecure: bool
    home: str = ""
    """The namespace that is read where not all of them can be and none is chosen; empty for that of the context."""


def source_options(command: F) -> F:
    """The flags that say what to read; the command gets them as keyword arguments for `source`."""
    for option in reversed((*_INPUT, *_KUBELET, *_CONNECTION)):
        command = option(command)
    return command


def hide(command: click.Command, *names: str) -> None:
    """Leave flags out of the help that a command refuses with a reason."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name in names:
            parameter.hidden = True


def refuse_empty(flag: str, paths: Iterable[str | None]) -> None:
    """Raises UsageError where a variable of the shell was empty: what it should have named would be left out unseen."""
    if "" in paths:
        raise UsageError(f"{flag} is empty; give the path of a file, or leave the flag out")


def refuse_choice(chosen: Source, why: str) -> None:
    """Raises UsageError, which begins with why, where -n or -l choose among pods that all count."""
    if chosen.namespace or chosen.selector:
        raise UsageError(f"{why}; leave {'-n' if chosen.namespace else '-l'} out here")


def to_option(command: F) -> F:
    """The flag --to of an audit."""
    return _TO(command)


def what_if_option(command: F) -> F:
    """The flag --what-if."""
    return _WHAT_IF(command)


def source(arguments: dict[str, Any]) -> Source:
    """Check the flags of `source_options`. Raises UsageError."""
    live = ("kubeconfig", "context", "cluster", "user", "as_user", "as_groups")
    given = [name for name in live if arguments[name]]
    if arguments["files"] and given:
        flag = "--" + given[0].replace("as_user", "as").replace("as_groups", "as-group")
        raise UsageError(f"-f reads files and {flag} speaks of a cluster; give one of them")
    for flag, paths in (("-f", arguments["files"]), ("--states", (arguments["states"],))):
        refuse_empty(flag, paths)
    if list(arguments["files"]).count("-") > 1:
        raise UsageError("-f - can be given once: there is one standard input")
    return Source(
        files=tuple(arguments["files"]),
        states=arguments["states"],
        namespace=None if arguments["all_namespaces"] else arguments["namespace"] or None,
        selector=arguments["selector"] or None,
        kubeconfig=arguments["kubeconfig"],
        context=arguments["context"],
        cluster=arguments["cluster"],
        user=arguments["user"],
        as_user=arguments["as_user"],
        as_groups=tuple(arguments["as_groups"]),
        timeout_seconds=_seconds(arguments["request_timeout"]),
        kubelet=_kubelet(arguments),
        kubelet_insecure=arguments["kubelet_insecure_tls"],
    )


def _kubelet(arguments: dict[str, Any]) -> str | None:
    said: str | None = arguments["kubelet"]
    if said is None:
        return None
    if said not in ("proxy", "direct") and not (said.startswith("files:") and len(said) > len("files:")):
        raise UsageError(f"--kubelet: {said!r} is not proxy, direct or files:DIR")
    if said in ("proxy", "direct") and arguments["files"]:
        raise UsageError(
            f"-f reads files and --kubelet={said} asks a cluster; save the answers and give --kubelet=files:DIR"
        )
    if said == "direct" and (arguments["as_user"] or arguments["as_groups"]):
        raise UsageError(
            "--kubelet=direct asks as yourself: kubelets know no impersonation; leave out --as, or use proxy"
        )
    return said


def _seconds(text: str) -> float | None:
    if text.isascii() and text.isdigit() and len(text) < 8:
        return float(text) or None
    from kubectl_cgaudit.duration import microseconds

    found = microseconds(text)
    seconds = None if found is None else float(found / 1_000_000)
    if seconds is None or seconds > _LONGEST_SECONDS:
        raise UsageError(f"--request-timeout: {text!r} is not a time such as 30s or 1m")
    return seconds or None
