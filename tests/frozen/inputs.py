"""What the truth was frozen for: the recorded clusters, known and blind, and 300 random clusters, each as the words of commands.

`tests/frozen/truth.json.gz` holds what the object model of commit b2f8763 answered, before the columnar core replaced
it. It is never written again: a difference is a bug in one of the two, and the facts decide which.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.reference.clusters import KINDS, cluster
from tests.support import GOLDEN, RECORDED, RECORDED_FLAGS, listed

HERE = Path(__file__).parent
CRIO = GOLDEN.parent / "golden-crio"
RANDOM_OF_EACH_KIND = 75
POLICY = """\
severities: {CGA203: off, CGA302: medium}
thresholds: {system-loss: 15%, pod-move: 20%}
exceptions:
  - rule: [CGA201, CGA204]
    match: {namespace: shop, kind: Deployment, name: check*}
    reason: agreed in CHG-123
    expires: 2199-12-31
"""


def words(name: str, folder: Path) -> list[list[str]]:
    """The commands of an input, without `-o`; the answer of the last is the frozen one. A file `first.json` is the answer of
    the first.

    name: of `names()`; folder: where files that the commands read are written.
    """
    if name in NAMED:
        (folder / "policy.yaml").write_text(POLICY)
        # worker-c as its kubelet was before, so that the kubelet to come refuses its cgroup v1.
        nodes = json.loads((GOLDEN / "nodes.json").read_text())
        for node in nodes["items"]:
            node["status"]["nodeInfo"]["kubeletVersion"] = "v1.34.2"
        (folder / "older.json").write_text(json.dumps(nodes))
        return [
            [str(folder / word[1:]) if word.startswith("@") else word for word in command] for command in NAMED[name]
        ]
    kind, _, seed = name.partition("-")
    made = cluster(kind, int(seed))  # type: ignore[arg-type]
    objects, said, target = folder / "c.json", folder / "s.yaml", folder / "t.yaml"
    objects.write_text(listed(*made.objects))
    said.write_text(yaml.safe_dump(made.states))
    if isinstance(made.target, list):
        target.write_text(yaml.safe_dump(made.target))
    to = str(target) if isinstance(made.target, list) else made.target
    return [["-f", str(objects), "--states", str(said), "--to", to, "--fail-on", "high"]]


def names() -> Iterator[str]:
    """Of all inputs."""
    yield from NAMED
    for kind in KINDS:
        yield from (f"{kind}-{seed}" for seed in range(RANDOM_OF_EACH_KIND))


BLIND = [word for path in RECORDED for word in ("-f", path)]
FAIL = ["--fail-on", "high"]


def _crio(folder: str) -> list[str]:
    of = CRIO / folder
    return ["-f", str(of / "nodes.json"), "-f", str(of / "pods.json"), "-f", str(of / "runtimeclasses.json")]


NAMED: dict[str, list[list[str]]] = {
    "golden": [[*RECORDED_FLAGS, *FAIL]],
    "golden to v2": [[*RECORDED_FLAGS, "--to", "v2", *FAIL]],
    "golden to runtime": [[*RECORDED_FLAGS, "--to", "runtime", *FAIL]],
    "golden to kubelet 1.36": [[*RECORDED_FLAGS, "--to", "kubelet=1.36.2", *FAIL]],
    "golden blind": [[*BLIND, *FAIL]],
    "golden blind, possible": [[*BLIND, *FAIL, "--fail-on-certainty", "possible"]],
    "golden blind to runtime": [[*BLIND, "--to", "runtime", *FAIL]],
    "golden, nodes and pods alone": [[*BLIND[:4], *FAIL]],
    "golden, one namespace": [[*RECORDED_FLAGS, "-n", "shop", *FAIL]],
    "golden with a lost node": [["-f", "@older.json", *RECORDED_FLAGS[2:], "--to", "kubelet=1.36.2", *FAIL]],
    "golden with a policy": [[*RECORDED_FLAGS, "--policy", "@policy.yaml", *FAIL]],
    "golden with a baseline": [BLIND, [*RECORDED_FLAGS, "--baseline", "@first.json", *FAIL]],
    "golden with kubelets": [[*BLIND, f"--kubelet=files:{GOLDEN}", *FAIL]],
    "golden with kubelets and states": [[*RECORDED_FLAGS, f"--kubelet=files:{GOLDEN}", *FAIL]],
    **{
        f"{folder} {label}": [[*_crio(folder), *more, *FAIL]]
        for folder in ("cgroupfs", "openshift-like")
        for label, more in (
            ("blind", []),
            ("known", ["--states", str(CRIO / folder / "states.yaml")]),
            ("with its kubelet", [f"--kubelet=files:{CRIO / folder}"]),
        )
    },
}
