"""`kubectl cgaudit snapshot`."""

import sys
from typing import Any

import click

from kubectl_cgaudit.cli import files, options, output, spared
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.gaps import exit_code
from kubectl_cgaudit.cli.reading import read
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.report.escape import json_bytes, visible
from kubectl_cgaudit.report.formats import FORMATS
from kubectl_cgaudit.text import counted

_KEPT = (
    "kept: of nodes their name, labels, CPU, versions, runtime handlers and since when they are ready; of pods their name, "
    "uid, owner, pod-template-hash and state; of containers their name, image, id, start, CPU request and limit, and whether "
    "they mount /sys/fs/cgroup; and what could not be read"
)
_LEFT_OUT = (
    "left out: environment variables, commands, arguments, volumes, secrets, annotations (of a static pod its uid is kept), "
    "other labels of pods, addresses, and all else"
)
_INSTEAD = "write it to a file with -o FILE.json.gz"


@click.command("snapshot")
@options.source_options
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    required=True,
    help="Where it goes: gzip, unless FILE ends with .json; - is standard output.",
)
def snapshot_command(path: str, **flags: Any) -> int:
    """Save what an audit needs of the cluster, and nothing more, for an audit later or a comparison.

    \b
    Example: kubectl cgaudit snapshot -o before.json.gz

    Every command reads it with -f: kubectl cgaudit -f before.json.gz. Two of them are compared with diff.
    """
    from kubectl_cgaudit.collect import snapshot

    chosen = options.source(flags)
    options.refuse_choice(chosen, "a snapshot holds all pods, as all of them compete, and who reads it may give -n")
    if chosen.states:
        raise UsageError("a snapshot holds what the cluster says; give --states to the command that reads it")
    if path.partition("=")[0] in FORMATS:
        raise UsageError(f"-o takes a file here, not a format ({path!r}); write -o FILE.json.gz")
    if sys.stdout is not None and sys.stdout.isatty() if path == "-" else files.is_terminal(path):
        raise UsageError(f"a snapshot is not for a terminal; {_INSTEAD}")
    spared.spare(path, spared.places(spared.inputs(flags)))
    if path != "-":
        files.check(path)
    cluster, _ = read(chosen)
    # It may be looked into, and printed.
    data = json_bytes(snapshot.encode(cluster))
    data = data if path.endswith(".json") else snapshot.pack(data)
    if path == "-":
        output.hand_over(data, _INSTEAD)
    else:
        files.save(path, data)
    where = "standard output" if path == "-" else path
    say(f"saved {_amounts(cluster)} to {visible(where)}")
    say(f"{_KEPT}\n{_LEFT_OUT}")
    return exit_code(cluster)


options.hide(snapshot_command, "namespace", "all_namespaces", "selector", "states")


def _amounts(cluster: Cluster) -> str:
    parts = [counted(len(cluster.nodes), "node"), counted(len(cluster.pods), "pod")]
    tables = (
        (cluster.replicasets, "owner of ReplicaSets", "owners of ReplicaSets"),
        (cluster.jobs, "owner of Jobs", "owners of Jobs"),
        (cluster.runtime_classes, "RuntimeClass", "RuntimeClasses"),
        (cluster.cgroup_v1_warnings, "node's warning of cgroup v1", "nodes' warnings of cgroup v1"),
        (
            cluster.kubelets,
            "kubelet's answers (cgroup paths and their shares)",
            "kubelets' answers (cgroup paths, shares)",
        ),
    )
    parts += [counted(len(table), one, many) for table, one, many in tables if table is not None]
    return ", ".join(parts)
