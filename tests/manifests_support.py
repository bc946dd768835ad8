"""The objects that `manifests` prints."""

import itertools
from typing import Any

from kubectl_cgaudit.manifests.build import build
from kubectl_cgaudit.manifests.settings import Settings
from kubectl_cgaudit.report.formats import FORMATS

EVERY = [
    Settings(
        kubelet=kubelet,
        owners=owners,
        sink=sink,
        states=states,
        policy=policy,
        to=to,
        creates_namespace=creates,
        fail_on=to and "high",
        network_policy=owners,
        api_ports=(8443, 16443) if owners and to else (),
        egress=("10.0.0.0/8:3128", "[fd00::/8]:53/udp") if owners and creates else (),
        formats=FORMATS,
    )
    for kubelet, owners, sink, states, policy, to, creates in itertools.product(
        (False, True),
        (False, True),
        ("pvc", "none"),
        (None, "states"),
        (None, "agreed"),
        (None, "v2,runc=1.3.6"),
        (False, True),
    )
]


def objects(settings: Settings) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in build(settings)}


def pod_spec(cron_job: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec
