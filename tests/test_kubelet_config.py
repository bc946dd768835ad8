"""What is read from a kubelet's /configz, and what is refused."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_cgaudit.collect import configz
from kubectl_cgaudit.collect.model import KubeletConfig
from kubectl_cgaudit.errors import InputError
from tests.kubelet_support import golden


def test_recorded_config():
    assert configz.config(golden("worker-b", "/configz")) == KubeletConfig(
        cgroup_driver="systemd",
        cgroups_per_qos=True,
        enforce_node_allocatable=("pods", "system-reserved-compressible"),
        system_reserved_cgroup="/system.slice",
        kube_reserved_cgroup=None,
        system_reserved_milli=500,
        kube_reserved_milli=100,
        cpu_cfs_quota=True,
        cpu_cfs_quota_period_us=100_000,
        cpu_manager_policy="none",
    )
    for node in ("worker-a", "worker-c"):
        config = configz.config(golden(node, "/configz"))
        assert (config.enforce_node_allocatable, config.system_reserved_cgroup) == (("pods",), None)
        assert (config.system_reserved_milli, config.kube_reserved_milli) == (200, 100)


def test_config_that_says_nothing():
    assert configz.config(b'{"kubeletconfig":{}}') == KubeletConfig(
        cgroup_driver=None,
        cgroups_per_qos=True,
        enforce_node_allocatable=(),
        system_reserved_cgroup=None,
        kube_reserved_cgroup=None,
        system_reserved_milli=None,
        kube_reserved_milli=None,
        cpu_cfs_quota=True,
        cpu_cfs_quota_period_us=100_000,
        cpu_manager_policy=None,
    )


def test_config_that_says_everything():
    said = {
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": ["none"],
        "systemReservedCgroup": "/system",
        "kubeReservedCgroup": "/kube",
        "systemReserved": {"memory": "1Gi"},
        "kubeReserved": {"cpu": "1.5"},
        "cpuCFSQuota": False,
        "cpuCFSQuotaPeriod": "5ms",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0-1",
    }
    assert configz.config(json.dumps({"kubeletconfig": said}).encode()) == KubeletConfig(
        cgroup_driver="cgroupfs",
        cgroups_per_qos=False,
        enforce_node_allocatable=("none",),
        system_reserved_cgroup="/system",
        kube_reserved_cgroup="/kube",
        system_reserved_milli=None,
        kube_reserved_milli=1500,
        cpu_cfs_quota=False,
        cpu_cfs_quota_period_us=5000,
        cpu_manager_policy="static",
        reserves_whole_cpus=True,
    )


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("100ms", 100_000),
        ("1s", 1_000_000),
        ("0.25s", 250_000),
        ("1us", 1),
        ("1µs", 1),
        ("5000ns", 5),
        ("0h0m.5s", 500_000),
    ],
)
def test_periods(text, microseconds):
    body = json.dumps({"kubeletconfig": {"cpuCFSQuotaPeriod": text}}).encode()
    assert configz.config(body).cpu_cfs_quota_period_us == microseconds


@pytest.mark.parametrize("text", ["0s", "1m", "100", "-1ms", "ms", "1ms ", "9" * 99 + "s", "1.2.3s", "١ms"])
def test_impossible_periods(text):
    with pytest.raises(InputError, match=r"^cpuCFSQuotaPeriod '.*' is no duration from 1us to 1s; ask again$"):
        configz.config(json.dumps({"kubeletconfig": {"cpuCFSQuotaPeriod": text}}).encode())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the answer is not JSON but ''; ask again"),
        (b"<html>", "the answer is not JSON but '<html>'; ask again"),
        (
            b'{"kubeletconfig":{"cgroupDriver":"sys',
            'the answer is not JSON but \'{"kubeletconfig":{"cgroupDriver":"sys\'',
        ),
        (b"{}", "the answer is no kubelet configuration: Object missing required field `kubeletconfig`; ask again"),
        (b"[]", "the answer is no kubelet configuration: Expected `object`, got `array`; ask again"),
        (
            b'{"kubeletconfig":{"enforceNodeAllocatable":"pods"}}',
            "the answer is no kubelet configuration: Expected `array | null`, got `str` - at "
            "`$.kubeletconfig.enforceNodeAllocatable`; ask again",
        ),
        (
            b'{"kubeletconfig":{"systemReserved":{"cpu":"lots"}}}',
            "systemReserved.cpu: 'lots' is not a CPU quantity such as 250m or 2",
        ),
    ],
)
def test_damaged_config(body, message):
    with pytest.raises(InputError) as caught:
        configz.config(body)
    assert str(caught.value).startswith(message)


@given(st.one_of(st.binary(), st.text().map(lambda text: json.dumps({"kubeletconfig": {text: text}}).encode())))
@example(b"[" * 100_000)
@example(b'{"kubeletconfig":{"x":' + b"[" * 100_000)
@example(b'{"\xff":1}')
@example(b'{"kubeletconfig":{"cgroupDriver":"\xff"}}')
@example(b'{"kubeletconfig":{"cgroupDriver":"\\ud800"}}')
def test_hostile_config_is_refused_or_read(body):
    with suppress(InputError):
        configz.config(body)
