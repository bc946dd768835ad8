"""Tab completion: kubectl runs `kubectl_complete-cgaudit WORD...`, and reads candidates and `:DIRECTIVE` from its output."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from kubectl_cgaudit.cli import names
from kubectl_cgaudit.cli.commands import COMMANDS, load
from kubectl_cgaudit.manifests.settings import SINKS

Values = Callable[[dict[str, Any], str], Iterable[str]]
# As cobra numbers them; kubectl's shell scripts act on the sum.
_FILES, _NO_SPACE, _NO_FILES = 0, 2, 4
_TARGETS = ("v2", "runtime", "v2+runtime", "kubelet=", "runc=", "crun=", "youki=", "platform=", "like=")
_TAKE_FILES = ("files", "file", "states", "states_after", "kubeconfig", "before", "after", "path")


@click.command("__complete", hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def complete_command(words: tuple[str, ...]) -> int:
    """Print what the last of WORDS may become."""
    click.echo(complete(words).encode(), nl=False)
    return 0


def main() -> None:
    """The executable kubectl_complete-cgaudit: always succeeds, whatever goes wrong."""
    try:
        click.echo(complete(tuple(sys.argv[1:])).encode(), nl=False)
    except OSError:
        # The interpreter would complain when it flushes at exit.
        sys.stdout = None


def complete(words: tuple[str, ...]) -> str:
    """What is printed for the words after `kubectl cgaudit`; the last is incomplete, and may be empty."""
    from kubectl_cgaudit.cli.audit import group

    _teach(group)
    *before, last = words or ("",)
    try:
        items = ShellComplete(group, {}, "cgaudit", "").get_completions(list(before), last)
    except Exception:  # noqa: BLE001 - a message would land in the middle of somebody's command line
        items = []
    # One candidate a line: none may bring its own lines, or colours.
    shown = sorted(
        {(item.value, item.help or "") for item in items if item.type == "plain" and item.value.isprintable()}
    )
    directive = _directive([value for value, _ in shown], any(item.type == "file" for item in items))
    lines = [f"{value}\t{' '.join(text.split())}" if text else value for value, text in shown]
    return "".join(f"{line}\n" for line in [*lines, f":{directive}"])


def _directive(values: list[str], files: bool) -> int:
    if files and not values:
        return _FILES
    goes_on = bool(values) and all(value.endswith(("=", "/", ":")) for value in values)
    return (_FILES if files else _NO_FILES) + (_NO_SPACE if goes_on else 0)


def _teach(group: click.Group) -> None:
    """Give every parameter that has known values its own completion."""
    for command in (group, *map(load, COMMANDS)):
        for parameter in command.params:
            name = parameter.name or ""
            values = _VALUES.get(f"{command.name} {name}", _VALUES.get(name))
            if name in _TAKE_FILES:
                parameter.shell_complete = _file  # type: ignore[assignment, method-assign]
            elif values:
                parameter.shell_complete = _completer(values)  # type: ignore[assignment, method-assign]


def _file(_: click.Context, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _completer(values: Values) -> Callable[[click.Context, str], list[CompletionItem]]:
    def found(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Flags may stand before the command too.
        outer = ctx.parent.params if ctx.parent else {}
        given = {**outer, **{name: value for name, value in ctx.params.items() if value}}
        items = [CompletionItem(each) for each in values(given, incomplete) if each.startswith(incomplete)]
        return items if items or values is not _to else _file(ctx, incomplete)

    return found


def _to(given: dict[str, Any], incomplete: str) -> Iterable[str]:
    head, comma, last = incomplete.rpartition(",")
    targets: Iterable[str] = _TARGETS
    if last.startswith("platform="):
        from kubectl_cgaudit.detect.catalogue import catalogue

        targets = (f"platform={platform.id}" for platform in catalogue().targets)
    elif last.startswith("like=") and given:
        targets = (f"like={name}" for name in names.listed(given, "/api/v1/nodes"))
    return (f"{head}{comma}{target}" for target in targets)


def _thresholds(_: dict[str, Any], _incomplete: str) -> Iterable[str]:
    from kubectl_cgaudit.audit.thresholds import Thresholds

    return [f"{name}=" for name in Thresholds().by_name()]


_VALUES: dict[str, Values] = {
    "to": _to,
    "thresholds": _thresholds,
    "kubelet": lambda _, __: ("proxy", "direct", "files:"),
    "context": lambda given, _: names.of_kubeconfig(given, "contexts"),
    "cluster": lambda given, _: names.of_kubeconfig(given, "clusters"),
    "user": lambda given, _: names.of_kubeconfig(given, "users"),
    "namespace": lambda given, _: names.listed(given, "/api/v1/namespaces"),
    "node": lambda given, _: names.listed(given, "/api/v1/nodes"),
    "pod": names.pods,
    # A job in the cluster has neither files nor nodes/proxy.
    "manifests to": lambda _, incomplete: _to({}, incomplete),
    "manifests kubelet": lambda _, __: ("direct",),
    "manifests sink": lambda _, __: SINKS,
}
"""By parameter, or by command and parameter where a command takes others than the rest."""
