"""All objects, in the order in which they are made."""

from kubectl_cgaudit.manifests.access import binding, cluster_role, network_policy
from kubectl_cgaudit.manifests.job import cron_job
from kubectl_cgaudit.manifests.parts import Object, claim, namespace, service_account
from kubectl_cgaudit.manifests.settings import Settings, check


def build(settings: Settings) -> tuple[Object, ...]:
    """The objects. Raises UsageError for settings that cannot be."""
    check(settings)
    makers = [
        *([namespace] if settings.creates_namespace else []),
        *([network_policy] if settings.network_policy else []),
        service_account,
        cluster_role,
        binding,
        *([claim] if settings.sink == "pvc" else []),
        cron_job,
    ]
    return tuple(make(settings) for make in makers)
