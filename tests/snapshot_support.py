"""A cluster full of what no snapshot keeps."""

from kubectl_cgaudit.collect.model import Cluster
from tests.support import cluster, container, node, pod


def everything(_namespace: str, _labels: dict[str, str]) -> bool:
    return True


def secretive() -> Cluster:
    app = container(
        "app",
        "250m",
        image="registry.example/app:1",
        command=["s3cr3t-command"],
        args=["--password=s3cr3t-arg"],
        env=[{"name": "PASSWORD", "value": "s3cr3t-env"}],
        envFrom=[{"secretRef": {"name": "s3cr3t-from"}}],
        volumeMounts=[{"name": "s3cr3t-volume", "mountPath": "/s3cr3t-volume"}],
    )
    running = pod(
        "web-5d",
        app,
        labels={"app": "s3cr3t-label", "pod-template-hash": "5d"},
        owner=("ReplicaSet", "web-5d"),
        volumes=[{"name": "s3cr3t-volume", "secret": {"secretName": "s3cr3t-volume"}}],
    )
    running["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied": "s3cr3t-annotation"}
    machine = node("n1", labels={"pool": "blue"})
    machine["metadata"]["annotations"] = {"a": "s3cr3t-node"}
    machine["status"]["addresses"] = [{"type": "InternalIP", "address": "10.9.8.7"}]
    owners = [
        {
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {"a": "s3cr3t-annotation"},
                "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}],
            },
        }
        for name in ("web-5d", "web-old")
    ]
    return cluster(machine, running, *owners, {"kind": "Secret", "data": {"x": "s3cr3t-env"}})
