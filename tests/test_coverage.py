"""What was not read, in words: one or many, and what is no gap."""

from typing import Any

import msgspec

from kubectl_cgaudit.collect.assemble import Assembly
from tests.support import V2_LINEAR, audited, cluster, container, node, pod


def gaps(*objects: dict[str, Any]) -> dict[str, str]:
    return {each.what: each.why for each in audited(cluster(*objects), V2_LINEAR).coverage.gaps}


def test_one_or_many_classes_that_nobody_read() -> None:
    def of(*names: str) -> dict[str, str]:
        pods = [pod(f"p{name}", container("c", "1"), runtimeClassName=name) for name in names]
        return gaps(node(), *pods)

    assert of("a") == {"RuntimeClass a": "pods name it, and it was not read: the name is taken for the handler's"}
    assert of("a", "b") == {
        "2 RuntimeClasses (a, b)": "pods name them, and they were not read: the name is taken for the handler's"
    }


def test_classes_that_are_not_among_those_that_were_read() -> None:
    other = {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "other"}, "handler": "crun"}

    def of(*names: str) -> list[tuple[str, str, str]]:
        pods = [pod(f"p{name}", container("c", "1"), runtimeClassName=name) for name in ("other", *names)]
        found = audited(cluster(node(), other, *pods), V2_LINEAR).coverage.gaps
        return [(each.what, each.why, each.remedy) for each in found]

    assert of() == []
    assert of("a") == [
        (
            "RuntimeClass a",
            "pods name it, and it is not among the RuntimeClasses that were read: the name is taken for the handler's",
            "See kubectl get runtimeclasses: without it such pods cannot be created anew; if it is there, read all of them",
        )
    ]
    assert of("a", "b") == [
        (
            "2 RuntimeClasses (a, b)",
            "pods name them, and they are not among the RuntimeClasses that were read: the name is taken for the handler's",
            "See kubectl get runtimeclasses: without them such pods cannot be created anew; if they are there, read all of them",
        )
    ]


def test_one_or_many_nodes_that_nobody_read() -> None:
    one = gaps(node(), pod("p", container("c", "1"), on="gone"))
    assert one == {"node gone": "1 pod runs there, but the Node is not among what was read"}
    many = gaps(node(), *(pod(f"p{name}", container("c", "1"), on=f"m{name:02}") for name in range(30)))
    ((what, why),) = many.items()
    assert what.startswith("30 nodes (m00, m01, ")
    listed = what.count(", m") + 1
    assert what.endswith(f" and {30 - listed} more)")
    assert why == "30 pods run there, but the Node is not among what was read"


def test_a_filter_that_matches_some_pods_leaves_no_gap() -> None:
    def found(namespace: str) -> list[str]:
        assembly = Assembly(lambda space, _labels: space == namespace, f"namespace {namespace}")
        pods = [pod(name, container("c", "1"), namespace=name) for name in ("x", "y")]
        for each in (node(), *pods):
            assembly.add(each["kind"], each, lambda raw, type_: msgspec.convert(raw, type=type_), "test")
        return [gap.what for gap in audited(assembly.cluster("test"), V2_LINEAR).coverage.gaps]

    assert found("x") == []
    assert found("z") == ["pods that match namespace z"]
