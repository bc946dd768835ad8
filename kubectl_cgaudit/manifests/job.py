"""The CronJob: the audit as on a laptop, in a pod that can do nothing else."""

from kubectl_cgaudit.manifests.parts import NAME, Object, labels, metadata
from kubectl_cgaudit.manifests.settings import REQUEST_MIB, Settings

REPORTS = "/reports"
CONFIG = "/etc/cgaudit"
_SCRATCH = "/tmp"  # noqa: S108 - an emptyDir of the pod's own
# The user that images without a shell or a root call nonroot; the image need not know it.
_UID = 65532
# A token is good for an hour: no run outlives the one it starts with.
_DEADLINE_SECONDS = 1800
_KEPT_SECONDS = 7 * 24 * 3600
_FILES = {"json": "audit.json", "html": "audit.html", "prometheus": "audit.prom"}


def arguments(settings: Settings) -> list[str]:
    """The command line of the audit. The table goes to the pod's log, the rest to the sink."""
    words = ["-o", "table"]
    if settings.sink == "pvc":
        for name, file in _FILES.items():
            words += ["-o", f"{name}={REPORTS}/{file}"] if name in settings.formats else []
    words += [f"--to={settings.to}"] if settings.to else []
    words += [f"--{name}={CONFIG}/{name}/{name}.yaml" for name, _ in _config_maps(settings)]
    words += ["--kubelet=direct"] if settings.kubelet else []
    words += [f"--fail-on={settings.fail_on}"] if settings.fail_on else []
    return words


def cron_job(settings: Settings) -> Object:
    """One run at a time, never repeated by itself: what failed once is looked at, or comes with the next schedule."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(settings),
        "spec": {
            "schedule": settings.schedule,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {
                "metadata": {"labels": labels()},
                "spec": {
                    "backoffLimit": 0,
                    "activeDeadlineSeconds": _DEADLINE_SECONDS,
                    "ttlSecondsAfterFinished": _KEPT_SECONDS,
                    "template": {"metadata": {"labels": labels()}, "spec": _pod(settings)},
                },
            },
        },
    }


def _pod(settings: Settings) -> Object:
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _UID,
            "runAsGroup": _UID,
            "fsGroup": _UID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(settings)],
        "volumes": [volume for volume, _ in _volumes(settings)],
    }


def _container(settings: Settings) -> Object:
    return {
        "name": NAME,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["kubectl-cgaudit"],
        "args": arguments(settings),
        # Nothing is there, so the pod's service account is used and no kubeconfig.
        "env": [{"name": "HOME", "value": _SCRATCH}],
        # No CPU limit: it would only make the run longer. The request is its weight, and enough for a small cluster.
        "resources": {"requests": {"cpu": "100m", "memory": f"{REQUEST_MIB}Mi"}, "limits": {"memory": settings.memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for _, mount in _volumes(settings)],
    }


def _volumes(settings: Settings) -> list[tuple[Object, Object]]:
    """Each volume with its mount."""
    found: list[tuple[Object, Object]] = [
        ({"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}, {"name": "tmp", "mountPath": _SCRATCH})
    ]
    if settings.sink == "pvc":
        claim = {"name": "reports", "persistentVolumeClaim": {"claimName": NAME}}
        found.append((claim, {"name": "reports", "mountPath": REPORTS}))
    for name, config_map in _config_maps(settings):
        volume = {"name": name, "configMap": {"name": config_map}}
        found.append((volume, {"name": name, "mountPath": f"{CONFIG}/{name}", "readOnly": True}))
    return found


def _config_maps(settings: Settings) -> list[tuple[str, str]]:
    """Each file of the audit that a ConfigMap has, with that one's name."""
    files = (("states", settings.states), ("policy", settings.policy))
    return [(name, config_map) for name, config_map in files if config_map]
