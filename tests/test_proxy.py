"""Which proxy of the environment serves which server: the rules are those of Go's httpproxy."""

import pytest

from kubectl_cgaudit.collect.credentials import configure, in_cluster
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from kubectl_cgaudit.collect.proxy import of_environment
from kubectl_cgaudit.collect.transport import Api
from tests.vcr_support import kubeconfig

HERE = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "excepted"),
    [
        ("https://api.b.example:6443", "*.b.example", True),
        ("https://x.api.b.example:6443", "*.b.example", True),
        ("https://b.example:6443", "*.b.example", False),
        ("https://api.b.example", ".b.example", True),
        ("https://b.example", ".b.example", False),
        ("https://b.example", "b.example", True),
        ("https://API.B.example", " api.b.EXAMPLE ", True),
        ("https://api.b.example", "b.example", True),
        ("https://ab.example", "b.example", False),
        ("https://b.example", "*b.example", False),
        ("https://b.example", "a.example,*", True),
        ("https://b.example", "a.example,,", False),
        ("https://b.example:6443", "b.example:6443", True),
        ("https://b.example:6443", "b.example:443", False),
        ("https://b.example", "b.example:443", True),
        ("https://api.b.example:6443", "*.b.example:6443", True),
        ("https://b.example:6443", ":6443", False),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://10.1.2.3:6443", "10.1.2.3:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.9.9.9/8", True),
        ("https://10.1.2.3:6443", "11.0.0.0/8", False),
        ("https://10.1.2.3:6443", "fd00::/8", False),
        ("https://10.1.2.3:6443", "10.0.0.0/x", False),
        ("https://10.1.2.3:6443", "10.0.0.0/255.0.0.0", False),
        ("https://10.1.2.3:6443", "10.1.2.3/", False),
        ("https://10.1.2.3:6443", "2.3", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "fd00:0::1", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:443", False),
        ("https://[::ffff:10.1.2.3]:6443", "10.1.2.3", True),
        ("https://b.example", "10.0.0.0/8", False),
        ("https://localhost:6443", "", True),
        ("https://127.9.9.9:6443", "", True),
        ("https://[::1]:6443", "", True),
    ],
)
def test_whom_no_proxy_excepts(server: str, no_proxy: str, excepted: bool) -> None:
    found = of_environment(server, {"HTTPS_PROXY": HERE, "NO_PROXY": no_proxy})
    assert found == (None if excepted else HERE)


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        ("https://a", {"HTTPS_PROXY": "upper", "https_proxy": "lower"}, "upper"),
        ("https://a", {"HTTPS_PROXY": "", "https_proxy": "lower"}, "lower"),
        ("https://a", {"HTTP_PROXY": "plain", "ALL_PROXY": "all", "all_proxy": "all"}, None),
        ("http://a", {"HTTPS_PROXY": "upper", "http_proxy": "plain"}, "plain"),
        ("https://a", {"https_proxy": "lower", "NO_PROXY": "b", "no_proxy": "a"}, "lower"),
        ("https://a", {"https_proxy": "lower", "NO_PROXY": "a", "no_proxy": "b"}, None),
        ("https://a", {"https_proxy": "lower", "no_proxy": "a"}, None),
        ("https://a", {}, None),
    ],
)
def test_upper_case_is_read_first_and_all_proxy_never(
    server: str, environment: dict[str, str], expected: str | None
) -> None:
    assert of_environment(server, environment) == expected


@pytest.mark.usefixtures("home")
def test_every_way_to_a_server_goes_by_these_rules(tmp_path, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://all:1")
    monkeypatch.setenv("https_proxy", "http://lower:1")
    monkeypatch.setenv("NO_PROXY", "*.near.example")
    for name, expected in (("a.near.example", None), ("near.example", "http://lower:1")):
        path = kubeconfig(tmp_path / "c", f"https://{name}")
        choice = choose(Connection(kubeconfig=path))
        assert choice is not None
        assert configure(choice).proxy == expected
        with Api(Connection(kubeconfig=path)) as api:
            assert api._proxy == expected
    path = kubeconfig(tmp_path / "c", "http://near.example")
    with Api(Connection(kubeconfig=path)) as api:
        assert api._proxy is None
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("c")
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name, expected in (("a.near.example", None), ("10.0.0.1", "http://lower:1")):
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", name)
        assert in_cluster().proxy == expected
