"""What the numbers rest on, and what speaks of nothing in the cluster."""

import pytest

from tests.support import V2_LINEAR, audited, cluster, container, node, pod


def test_what_the_numbers_rest_on() -> None:
    def stated(rules: str) -> str:
        return " ".join(audited(cluster(node(), pod("p", container("c", "1"))), rules, "v2").target.assumptions)

    system, beside, driver = "system.slice has its default", "Beside kubepods only system.slice", "The cgroup driver is"
    plain = stated("- {cgroup: v2, runtimes: {default: linear}}")
    assert (system in plain, beside in plain, driver in plain) == (True, True, True)
    told = stated(
        "- {cgroup: v2, driver: systemd, system_slice: 20, root: {other.slice: 50}, runtimes: {default: linear}}"
    )
    assert (system in told, beside in told, driver in told) == (False, False, False)
    two = cluster(node(), node("n2"), pod("p", container("c", "1")))
    half = " ".join(
        audited(
            two,
            "- {cgroup: v2, runtimes: {default: linear}}\n"
            "- {match: {name: n2}, driver: systemd, system_slice: 20, root: {other.slice: 50}}",
            "v2",
        ).target.assumptions
    )
    assert (system in half, beside in half, driver in half) == (True, True, True)


@pytest.mark.parametrize(
    ("kubelet", "to", "confidence", "said"),
    [
        ("v1.25.0", "v2", "likely", False),
        ("v1.37.9", "v2", "likely", False),
        ("v1.24.17", "v2", "probable", True),
        ("v1.38.0", "v2", "probable", True),
        ("", "v2", "probable", True),
        ("v1.33.13", "kubelet=1.38", "likely", True),
        ("v1.33.13", "kubelet=1.37", "likely", False),
    ],
)
def test_a_kubelet_that_nobody_looked_at_is_no_likely_one(kubelet: str, to: str, confidence: str, said: bool) -> None:
    found = audited(cluster(node(kubelet=kubelet), pod("p", container("c", "1"))), V2_LINEAR, to)
    assert found.nodes[0].known["kubelet"].confidence == confidence
    taken = (
        "Kubelets before 1.25 and after 1.37, and of unknown version, are taken to use the linear formula; not checked."
    )
    assert (taken in found.target.assumptions) is said


@pytest.mark.parametrize(
    ("rules", "to", "unmatched"),
    [
        (
            "- {cgroup: v2, runtimes: {default: crun 1.28}}",
            "runc=1.3.6",
            ("no node runs runc, so --to runc=1.3.6 changes nothing",),
        ),
        (
            "- {cgroup: v2, runtimes: {default: runc 1.3.6, defualt: runc 1.1.5}}",
            "v2",
            ("test rule 1 names the handler defualt, which no matching node has; there is default",),
        ),
        (
            "- {cgroup: v2, runtimes: {default: runc 1.3.6}}\n- {match: {name: x}, cgroup: v1}",
            "v2",
            ("test rule 2 matches no node",),
        ),
    ],
)
def test_what_speaks_of_nothing_is_named(rules: str, to: str, unmatched: tuple[str, ...]) -> None:
    result = audited(cluster(node(), pod("p", container("app", "200m"))), rules, to)
    assert result.coverage.unmatched == unmatched
