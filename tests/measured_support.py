"""A kubelet's answers, and what is made of them."""

from typing import Any

from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.collect import configz
from kubectl_cgaudit.collect.model import KubeletAnswers, KubeletConfig
from kubectl_cgaudit.detect import measured
from tests.kubelet_support import CONFIG as SAID

CONFIG = configz.config(SAID)


def answers(
    shares: dict[str, int] | None = None, *, config: KubeletConfig | None = CONFIG, **more: Any
) -> KubeletAnswers:
    usual: dict[str, Any] = {"cgroup_version": "v2", "stats_from_spec": False}
    return KubeletAnswers("n1", shares=shares or {}, config=config, problems=(), **{**usual, **more})


def says(found: KubeletAnswers, kubelet: KubeletVersion | None = None, known: Any = None) -> dict[str, tuple[str, str]]:
    """Value and strength by what it is about."""
    return {each.about: (each.value, each.strength) for each in measured.evidence(found, (), kubelet, known)}
