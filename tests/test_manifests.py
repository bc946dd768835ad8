"""The objects that run the audit in a cluster: their rights, their schemas, the chart, and the run itself."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import incluster_config

from kubectl_cgaudit import __version__
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.manifests.access import rules
from kubectl_cgaudit.manifests.build import build
from kubectl_cgaudit.manifests.job import arguments
from kubectl_cgaudit.manifests.render import as_json, as_yaml
from kubectl_cgaudit.manifests.settings import Settings, check
from kubectl_cgaudit.report.formats import FORMATS
from tests.manifests_support import EVERY, objects, pod_spec
from tests.simulator import Cluster, Fault, Simulator, Size

LIST_NODES_PODS = {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}
GET_KUBELET = {"apiGroups": [""], "resources": ["nodes/metrics", "nodes/configz"], "verbs": ["get"]}
LIST_OWNERS = [
    {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]},
    {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
]
REPORTS = [
    word
    for name, file in (("json", "audit.json"), ("html", "audit.html"), ("prometheus", "audit.prom"))
    if name in FORMATS
    for word in ("-o", f"{name}=/reports/{file}")
]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["manifests", *words]) == 0
    return capsys.readouterr().out


# Rights


def test_by_default_it_may_list_nodes_and_pods_and_nothing_else() -> None:
    assert rules(Settings()) == [LIST_NODES_PODS]


def test_each_flag_adds_its_rights_and_no_more() -> None:
    assert rules(Settings(kubelet=True)) == [LIST_NODES_PODS, GET_KUBELET]
    assert rules(Settings(owners=True)) == [LIST_NODES_PODS, *LIST_OWNERS]
    assert rules(Settings(owners=True, kubelet=True)) == [LIST_NODES_PODS, *LIST_OWNERS, GET_KUBELET]


def test_nothing_ever_grants_more_than_reading_these_resources() -> None:
    granted = {
        (group, resource, verb)
        for settings in EVERY
        for rule in objects(settings)["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == {
        ("", "nodes", "list"),
        ("", "pods", "list"),
        ("", "events", "list"),
        ("", "nodes/metrics", "get"),
        ("", "nodes/configz", "get"),
        ("apps", "replicasets", "list"),
        ("batch", "jobs", "list"),
        ("node.k8s.io", "runtimeclasses", "list"),
    }


def test_the_rules_go_to_the_jobs_service_account_alone() -> None:
    found = objects(Settings(namespace="audits"))
    name = "kubectl-cgaudit:audits"
    assert found["ClusterRole"]["metadata"]["name"] == name
    assert found["ClusterRoleBinding"]["metadata"]["name"] == name
    assert found["ClusterRoleBinding"]["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": name,
    }
    assert found["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "cgaudit", "namespace": "audits"}
    ]
    assert found["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod_spec(found["CronJob"])["automountServiceAccountToken"] is True


# Network

DNS = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
API = {"ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]}
KUBELETS = {"ports": [{"protocol": "TCP", "port": 10250}]}


def test_a_network_policy_lets_nobody_in_and_the_job_out_to_what_it_asks() -> None:
    found = objects(Settings(network_policy=True, namespace="audits"))["NetworkPolicy"]
    assert found["apiVersion"] == "networking.k8s.io/v1"
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("cgaudit", "audits")
    assert found["spec"] == {
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kubectl-cgaudit"}},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [DNS, API],
    }
    pod = objects(Settings())["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]
    assert found["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_each_flag_adds_its_ports_to_the_network_policy_and_no_more() -> None:
    def egress(**more: Any) -> list[dict[str, Any]]:
        rules: list[dict[str, Any]] = objects(Settings(network_policy=True, **more))["NetworkPolicy"]["spec"]["egress"]
        return rules

    assert egress(kubelet=True) == [DNS, API, KUBELETS]
    assert egress(api_ports=(8443,)) == [DNS, {"ports": [*API["ports"], {"protocol": "TCP", "port": 8443}]}]
    assert egress(egress=("10.1.2.3/8:3128", "192.0.2.1:53/udp", "[fd00::1]:80/tcp"), kubelet=True) == [
        DNS,
        API,
        KUBELETS,
        {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"protocol": "TCP", "port": 3128}]},
        {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [{"protocol": "UDP", "port": 53}]},
        {"to": [{"ipBlock": {"cidr": "fd00::1/128"}}], "ports": [{"protocol": "TCP", "port": 80}]},
    ]


# Objects


def test_which_objects_there_are() -> None:
    whole = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "PersistentVolumeClaim", "CronJob"]
    assert [each["kind"] for each in build(Settings())] == whole
    assert [each["kind"] for each in build(Settings(sink="none"))] == [
        kind for kind in whole if kind != "PersistentVolumeClaim"
    ]
    assert [each["kind"] for each in build(Settings(creates_namespace=False))] == whole[1:]
    assert [each["kind"] for each in build(Settings(network_policy=True))] == [whole[0], "NetworkPolicy", *whole[1:]]


def test_the_pod_passes_pod_security_restricted() -> None:
    for settings in EVERY:
        pod = pod_spec(objects(settings)["CronJob"])
        (container,) = pod["containers"]
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= {
            "emptyDir",
            "persistentVolumeClaim",
            "configMap",
        }
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(pod)
        assert "ports" not in container
    assert {
        name: value for name, value in objects(Settings())["Namespace"]["metadata"]["labels"].items() if "pod-" in name
    } == {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


def test_one_run_at_a_time_that_ends_and_is_not_repeated() -> None:
    spec = objects(Settings())["CronJob"]["spec"]
    job = spec["jobTemplate"]["spec"]
    assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("Forbid", 3600)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 3)
    assert (job["backoffLimit"], job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) == (0, 1800, 604800)
    (container,) = pod_spec(objects(Settings(memory="2Gi"))["CronJob"])["containers"]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}


def test_the_command_line_of_the_job() -> None:
    assert arguments(Settings(formats=FORMATS)) == ["-o", "table", *REPORTS]
    assert arguments(Settings(formats=("table", "html"))) == ["-o", "table", "-o", "html=/reports/audit.html"]
    assert arguments(
        Settings(sink="none", to="v2", states="s", policy="s", kubelet=True, fail_on="high", formats=FORMATS)
    ) == [
        "-o",
        "table",
        "--to=v2",
        "--states=/etc/cgaudit/states/states.yaml",
        "--policy=/etc/cgaudit/policy/policy.yaml",
        "--kubelet=direct",
        "--fail-on=high",
    ]
    assert arguments(Settings(sink="none", policy="p")) == [
        "-o",
        "table",
        "--policy=/etc/cgaudit/policy/policy.yaml",
    ]


def test_every_mount_has_its_volume() -> None:
    for settings in EVERY:
        pod = pod_spec(objects(settings)["CronJob"])
        mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
        expected = {"tmp": "/tmp"}
        expected |= {"reports": "/reports"} if settings.sink == "pvc" else {}
        expected |= {"states": "/etc/cgaudit/states"} if settings.states else {}
        expected |= {"policy": "/etc/cgaudit/policy"} if settings.policy else {}
        assert mounts == expected
        assert [each["name"] for each in pod["volumes"]] == list(expected)


@pytest.mark.parametrize("version", ["1.25", "1.36"])
def test_every_object_is_what_the_api_server_takes(version: str) -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate has the API's schemas: install it")
    for settings in EVERY:
        for each in build(settings):
            schemas.validate(each, version, strict=True)
    wrong = objects(Settings())["CronJob"]
    wrong["spec"]["jobTemplate"]["spec"]["backOffLimit"] = 0
    with pytest.raises(schemas.ValidationError):
        schemas.validate(wrong, version, strict=True)


# The command


def test_yaml_and_json_hold_the_same_objects(capsys: pytest.CaptureFixture[str]) -> None:
    expected = list(build(Settings(image="registry.example/cgaudit:1", formats=FORMATS)))
    flags = ["--image", "registry.example/cgaudit:1"]
    assert list(yaml.safe_load_all(printed(capsys, *flags))) == expected
    assert json.loads(printed(capsys, *flags, "-o", "json")) == {"apiVersion": "v1", "kind": "List", "items": expected}
    assert as_yaml(expected) == printed(capsys, *flags)
    assert as_json(expected) == printed(capsys, *flags, "-o", "json")


def test_every_flag_arrives(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-n", "audits", "--existing-namespace", "--schedule", "@weekly", "--to", "v2", "--owners"]
    words += [
        "--states-configmap",
        "states",
        "--policy-configmap",
        "agreed",
        "--kubelet=direct",
        "--sink",
        "none",
        "--memory",
        "2Gi",
        "--image",
        "i",
        "--network-policy",
        "--api-port",
        "8443",
        "--api-port=16443",
        "--egress",
        "10.0.0.0/8:3128",
    ]
    assert list(yaml.safe_load_all(printed(capsys, *words))) == list(
        build(
            Settings(
                image="i",
                namespace="audits",
                creates_namespace=False,
                schedule="@weekly",
                to="v2",
                kubelet=True,
                owners=True,
                sink="none",
                memory="2Gi",
                states="states",
                policy="agreed",
                network_policy=True,
                api_ports=(8443, 16443),
                egress=("10.0.0.0/8:3128",),
                formats=FORMATS,
            )
        )
    )


def test_the_image_that_is_nowhere_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["manifests"]) == 0
    assert capsys.readouterr().err == (
        f"note: kubectl-cgaudit:{__version__} is in no registry; build it with the Containerfile, push it where your nodes "
        "can pull it, and name it with --image\n"
    )


@pytest.mark.parametrize("name", ["1e3", "0o7", "y", "n", "no", "1", "0x1f"])
def test_a_name_that_looks_like_a_number_stays_a_text_for_every_yaml_parser(name: str) -> None:
    assert f'namespace: "{name}"\n' in as_yaml(build(Settings(namespace=name)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--namespace", "Audits"], "--namespace: 'Audits' is no name of a namespace; write lower case, digits and -"),
        (
            ["-n", "default"],
            "--namespace: default is there already, and its labels are not ours; add --existing-namespace",
        ),
        (["--image", "a b"], "--image: 'a b' is no image; write [REGISTRY/]NAME[:TAG][@DIGEST]"),
        (["--schedule", "daily"], "--schedule: 'daily' is no schedule; write five fields such as '17 5 * * *'"),
        (
            ["--schedule", "TZ=UTC 1 1 * * *"],
            "--schedule: 'TZ=UTC 1 1 * * *' is no schedule; write five fields such as '17 5 * * *'",
        ),
        (["--memory", "512"], "--memory: '512' is no amount such as 512Mi or 2Gi"),
        (["--memory", "64Mi"], "--memory: 64Mi is less than the job requests; write 128Mi or more"),
        (
            ["--schedule", "60 5 * * *"],
            "--schedule: '60 5 * * *' is no schedule; write five fields such as '17 5 * * *'",
        ),
        (["--states-configmap", "-x"], "--states-configmap: '-x' is no name of a ConfigMap"),
        (["--policy-configmap", "a/b"], "--policy-configmap: 'a/b' is no name of a ConfigMap"),
        (
            ["--sink", "configmap"],
            "--sink: 'configmap' is not pvc or none: a ConfigMap holds 1 MiB at most, and writing one needs a permission "
            "that a tool that only reads should not have",
        ),
        (["--sink", "s3"], "--sink: 's3' is not pvc or none"),
        (
            ["--kubelet=proxy"],
            "--kubelet=proxy needs nodes/proxy, which also allows running commands in every container; use direct",
        ),
        (["--kubelet=files:x"], "--kubelet: 'files:x' is not direct, which is all that a job in the cluster can do"),
        (["--api-port", "8443"], "--api-port adds to the NetworkPolicy, which is not written; add --network-policy"),
        (
            ["--egress", "10.0.0.0/8:1"],
            "--egress adds to the NetworkPolicy, which is not written; add --network-policy",
        ),
        (["--network-policy", "--api-port=0"], "--api-port: 0 is no port; write a number from 1 to 65535"),
        (["--network-policy", "--api-port=65536"], "--api-port: 65536 is no port; write a number from 1 to 65535"),
        *(
            (
                ["--network-policy", "--egress", wrong],
                f"--egress: {wrong!r} is not CIDR:PORT; write it such as 10.0.0.0/8:8080, [fd00::/8]:8080 or 10.0.0.10/32:53/udp",
            )
            for wrong in (
                "",
                "10.0.0.0/8",
                "10.0.0.0/33:80",
                "proxy.example:3128",
                "fd00::/8:80",
                "[fe80::1%eth0]:80",
                "10.0.0.0/8:0",
                "10.0.0.0/8:65536",
                "10.0.0.0/8:80/sctp",
                ":80",
            )
        ),
        (["-o", "helm"], "-o: there is no format 'helm'; there are yaml, json"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert run(["manifests", *words]) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err) == ("", f"error: {message}\n")


def test_names_are_as_long_as_the_api_server_takes_them() -> None:
    check(Settings(states="a" * 253, namespace="b" * 63))
    with pytest.raises(UsageError, match=r"^--states-configmap: 'a{254}' is no name of a ConfigMap$"):
        check(Settings(states="a" * 254))
    with pytest.raises(UsageError, match=r"^--namespace: 'b{64}' is no name of a namespace; "):
        check(Settings(namespace="b" * 64))


@pytest.mark.parametrize("memory", ["128Mi", "1Gi"])
def test_a_limit_from_the_request_on_is_taken(memory: str) -> None:
    check(Settings(memory=memory))


def test_a_target_the_audit_would_refuse_is_refused_here(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["manifests", "--to", "v3"]) == 2
    assert capsys.readouterr().err.startswith("error: --to: 'v3' is neither a target nor a file")
    (tmp_path / "to.yaml").write_text("- {cgroup: v2}\n")
    assert run(["manifests", "--to", str(tmp_path / "to.yaml")]) == 2
    assert capsys.readouterr().err.endswith(
        "is a file here, which the job does not have; name the target, such as v2+runtime\n"
    )


def test_settings_are_checked_wherever_they_come_from() -> None:
    with pytest.raises(UsageError, match="'a/b' is no name of a namespace"):
        build(Settings(namespace="a/b"))


# The run


@pytest.fixture
def in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service account's files and environment for a simulator."""

    def mount(simulator: Simulator, home: str) -> None:
        assert simulator.ca
        (tmp_path / "token").write_text("mounted\n")
        monkeypatch.delenv("KUBECONFIG", raising=False)
        for name, value in (("HOST", "127.0.0.1"), ("PORT", str(simulator.port))):
            monkeypatch.setenv(f"KUBERNETES_SERVICE_{name}", value)
        monkeypatch.setenv("HOME", home)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(simulator.ca))

    return mount


@pytest.mark.skipif(not shutil.which("openssl"), reason="the simulator's certificate needs the openssl command")
@pytest.mark.parametrize("owners", [False, True])
def test_the_jobs_own_command_line_with_the_jobs_own_rights(
    owners: bool, in_cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = objects(Settings(owners=owners, states="audit", policy="audit", formats=FORMATS))
    granted = {each for rule in found["ClusterRole"]["rules"] for each in rule["resources"]}
    optional = ["replicasets", "jobs", "runtimeclasses", "events"]
    faults = [Fault("forbidden", resource, times=0) for resource in optional if resource not in granted]
    (container,) = pod_spec(found["CronJob"])["containers"]
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "states.yaml").write_text("- {cgroup: v2, runtimes: {default: runc 1.3.6}}\n")
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "policy.yaml").write_text("severities: {CGA206: off}\n")
    (tmp_path / "home").mkdir()
    places = {"/reports": str(tmp_path), "/etc/cgaudit": str(tmp_path)}
    words = list(container["args"])
    for place, there in places.items():
        words = [word.replace(f"={place}/", f"={there}/") for word in words]
    with Simulator(Cluster(Size(3, 30), 1), faults, tls=True) as simulator:
        in_cluster(simulator, str(tmp_path / "home"))
        assert run(words) == 0, capsys.readouterr().err
        asked = {seen.path.partition("?")[0].rpartition("/")[2] for seen in simulator.log}
        tokens = {seen.headers["Authorization"] for seen in simulator.log}
    assert asked == {"nodes", "pods", *optional}
    assert tokens == {"bearer mounted"}
    written = {path.name for path in tmp_path.iterdir() if path.name.startswith("audit.")}
    assert written == {word.rpartition("/")[2] for word in REPORTS if word != "-o"}
    audit = json.loads((tmp_path / "audit.json").read_text())
    assert audit["coverage"]["complete"] is True
    assert audit["policy"]["source"] == "policy.yaml"
    assert audit["coverage"]["source"] == f"cluster 127.0.0.1:{simulator.port} (in-cluster service account)"
    assert sum("may not be listed (403)" in note for note in audit["coverage"]["notes"]) == (0 if owners else 4)


# The chart


# The image
