"""The commands beside the audit: each module is imported when its command is used, so that help comes at once."""

from importlib import import_module
from pathlib import Path
from typing import cast

import click

from kubectl_cgaudit.errors import UsageError

COMMANDS = {
    "__complete": ("completion", "Print what the last of WORDS may become."),
    "check": (
        "check",
        "Check whether an audit may read what it needs, how many pages that is, and about how long it takes.",
    ),
    "convert": ("convert", "Convert a CPU REQUEST such as 250m, shares or a weight with both formulas, and back."),
    "diff": (
        "diff",
        "Compare two moments: which predictions for BEFORE came true in AFTER, and what moved that nobody predicted.",
    ),
    "explain": (
        "explain",
        "Show the arithmetic of one pod, from its spec to its share of the node's CPU, level by level.",
    ),
    "manifests": (
        "manifests",
        "Print the objects that run the audit inside the cluster, on a schedule, with the minimum permissions.",
    ),
    "nodes": (
        "nodes",
        "Show what each node, or NODE, runs: cgroup version, runtimes, kubelet, reserves, and how surely that is known.",
    ),
    "report": (
        "report",
        "Write a saved JSON audit in any format, byte for byte as the first run would have written it.",
    ),
    "snapshot": (
        "snapshot",
        "Save what an audit needs of the cluster, and nothing more, for an audit later or a comparison.",
    ),
    "tree": ("tree", "Show the cgroup tree of NODE, or of all nodes: every weight, quota and share, before and after."),
    "verify": (
        "verify",
        "Compare what is predicted with what the kubelets measure, cgroup by cgroup: to check an upgrade afterwards.",
    ),
    "version": ("version", "Say which version this is, how new its knowledge is, and what it runs on."),
}
"""Module and one line of help of each command. A test compares the lines with the commands' own."""


class Commands(click.Group):
    """A group whose commands are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All of them, sorted."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        return load(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, and the words behind its name. Raises UsageError for a file, which `-f *.json` makes a command."""
        if not ctx.resilient_parsing and args[0] not in COMMANDS:
            if _is_file(args[0]):
                raise UsageError(f"{args[0]} is a file and no command; give each file with its own -f")
            from kubectl_cgaudit.settings import meant

            names = [name for name in self.list_commands(ctx) if not hidden(name)]
            raise UsageError(
                f"there is no command {args[0]!r}{meant(args[0], names, 'see kubectl cgaudit --help; there are')}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx) if not hidden(name)])


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:  # Too long to be a name.
        return False


def hidden(name: str) -> bool:
    """Whether a command is for programs only, and not in the help."""
    return name.startswith("__")


def load(name: str) -> click.Command:
    """Import a command. Raises KeyError for a name that is none."""
    module = import_module(f"kubectl_cgaudit.cli.{COMMANDS[name][0]}")
    return cast("click.Command", getattr(module, f"{name.strip('_')}_command"))
