"""The API server of a test, and how it is read."""

from pathlib import Path

from kubectl_cgaudit.collect import live
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.model import Cluster, Gap
from kubectl_cgaudit.collect.progress import silent
from tests.vcr_support import (
    kubeconfig,
    small_cluster,
    trusting,
)

NO_PODS = Gap("pods", "the API server listed none", "Check which cluster was asked")


def everything(namespace, labels):
    return True


def read(connection, namespace=None, selects=everything, progress=silent, kubelets=None) -> Cluster:
    return live.read(connection, namespace, selects, "", progress, kubelets)


def local(tmp_path: Path, server, **more) -> Connection:
    return Connection(kubeconfig=kubeconfig(tmp_path / "config", server=server.url, cluster=trusting(server)), **more)


def only(**replies):
    """The small cluster, but for some resources: `pods=reply` or `pods=function of the path`."""

    def answer(path):
        reply = replies.get(path.partition("?")[0].rpartition("/")[2], small_cluster)
        return reply(path) if callable(reply) else reply

    return answer


def told(lines):
    return lambda what, done, total: lines.append(f"{what} {done}" + (f" of {total}" if total else ""))
