"""python -m tests.simulator: serve a simulated cluster until interrupted, or write it to a file."""

import argparse
import signal
import threading
from pathlib import Path

from tests.simulator import dump
from tests.simulator.cluster import Cluster, Size
from tests.simulator.pages import PAGE_SIZE, RESOURCES, Store
from tests.simulator.server import Simulator


def main() -> None:
    """Serve, or dump."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--pods", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=PAGE_SIZE, help="compress pages of this size beforehand")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds that every page takes")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--token", default="", help="ask for this bearer token")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig here")
    parser.add_argument("--dump", type=Path, help="write the cluster as kubectl would, and serve nothing")
    parser.add_argument("--sizes", action="store_true", help="say how large the lists are, and serve nothing")
    given = parser.parse_args()
    store = Store(Cluster(Size(given.nodes, given.pods), given.seed), page_size=given.limit)
    if given.dump:
        print(f"{dump.write(store, given.dump)} bytes in {given.dump}")
        return
    store.build()
    if given.sizes:
        for name in RESOURCES:
            objects, zipped = store.objects(name), store.folder.glob(f"{name}.{given.limit}/-/*.gz")
            print(
                f"{name}: {len(objects.keys)} objects, {objects.size} bytes, {sum(p.stat().st_size for p in zipped)} gzipped"
            )
        return
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Simulator(
        store.cluster, token=given.token, tls=given.tls, pace=given.pace, port=given.port, store=store
    ) as it:
        if given.kubeconfig:
            it.kubeconfig(given.kubeconfig)
        print(it.url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
