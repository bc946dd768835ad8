"""Which proxy of the environment serves which server: the rules are those of Go's httpproxy."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit

import pytest

from kubectl_cgaudit.collect.credentials import in_cluster, log_in
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from kubectl_cgaudit.collect.proxy import Proxy, of_environment, parsed
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError
from tests.live_support import read
from tests.vcr_support import kubeconfig, refused, serve

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
        assert log_in(choice).configuration.proxy == expected
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
        assert in_cluster().configuration.proxy == expected


CHARACTERS = "its login holds a character to be percent-encoded (# as %23, / as %2F, ? as %3F, % as %25)"
PLACE = "its URL names no host with a port from 1 to 65535"
BEGINS = "its URL begins with none of http://, https:// and socks5://"
BLANK = "its URL holds a space or a control character"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("by", ["kubeconfig", "environment"])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://user:SECRET#x@h:1", CHARACTERS),
        ("http://user:SEC/RET@h:1", CHARACTERS),
        ("http://user:SEC?RET@h:1", CHARACTERS),
        ("socks5://user:SEC#RET@h:1", CHARACTERS),
        ("http://user:SEC[RET@h:1", CHARACTERS),
        ("http://user:SEC%ZZRET@h:1", CHARACTERS),
        ("http://user:SECRET@h:1/a@b", CHARACTERS),
        ("http://user:SEC RET@h:1", BLANK),
        ("http://user:SECRET@h:1\n", BLANK),
        ("http://user:SECRET@h:65536", PLACE),
        ("http://user:SECRET@h:0", PLACE),
        ("http://user:SECRET@h:x", PLACE),
        ("http://user:SECRET@", PLACE),
        ("http://user:SECRET@[::1", PLACE),
        ("http://user:SECRET", PLACE),
        ("socks5://user:SECRET@:1080", PLACE),
        ("socks4://user:SECRET@h:1", BEGINS),
        ("SECRET://user@h:1", BEGINS),
        ("://user:SECRET@h:1", BEGINS),
    ],
)
def test_what_is_wrong_with_a_proxy_is_said_without_its_login(tmp_path, monkeypatch, url, why, by):
    if by == "environment":
        monkeypatch.setenv("HTTPS_PROXY", url)
    path = kubeconfig(tmp_path / "c", cluster={"proxy-url": url} if by == "kubeconfig" else None)
    assert refused(Connection(kubeconfig=path)) == f"the proxy cannot be used: {why}; correct proxy-url or HTTPS_PROXY"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("proxy:3128", Proxy(HERE)),
        ("HTTP://proxy:3128/path?query#x", Proxy(HERE)),
        ("http://@proxy:3128", Proxy(HERE)),
        ("https://[fd00::1]:3128", Proxy("https://[fd00::1]:3128")),
        ("socks5://proxy", Proxy("socks5h://proxy")),
        ("me:p%40ss@proxy:3128", Proxy(HERE, "me", "p@ss", "Basic bWU6cEBzcw==")),
        ("http://me:a@b:c@proxy:3128", Proxy(HERE, "me", "a@b:c", "Basic bWU6YUBiOmM=")),
        # As Go sends them: no password is an empty one, and what is beyond ASCII goes out in UTF-8.
        ("http://me@proxy:3128", Proxy(HERE, "me", "", "Basic bWU6")),
        ("http://me:%D0%BA%C3%A9@proxy:3128", Proxy(HERE, "me", "кé", "Basic bWU60LrDqQ==")),
        ("http://me:кé@proxy:3128", Proxy(HERE, "me", "кé", "Basic bWU60LrDqQ==")),
        ("socks5://me:p%25@proxy:1", Proxy("socks5h://proxy:1", "me", "p%", "Basic bWU6cCU=")),
    ],
)
def test_the_login_of_a_proxy_stands_beside_its_url(url: str, found: Proxy) -> None:
    assert parsed(url) == found


class SocksProxy:
    """A SOCKS 5 proxy for one connection, which it leads to a server of the test whatever is asked for."""

    def __init__(self, to: str, login: tuple[bytes, bytes] | None, answer: int = 0) -> None:
        self._to, self._login, self._answer = urlsplit(to), login, answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.asked: list[tuple[int, str, int]] = []
        self.logins: list[tuple[bytes, bytes]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listening.accept()
            threading.Thread(target=self._lead, args=(client,), daemon=True).start()

    def _lead(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as said:
            said.read(said.read(2)[1])
            client.sendall(b"\x05\x02" if self._login else b"\x05\x00")
            if self._login:
                said.read(1)
                self.logins.append((said.read(said.read(1)[0]), said.read(said.read(1)[0])))
                client.sendall(b"\x01\x00")
            kind = said.read(4)[3]
            name = said.read(said.read(1)[0]) if kind == 3 else said.read(4)
            self.asked.append((kind, name.decode(), int.from_bytes(said.read(2), "big")))
            client.sendall(bytes((5, self._answer, 0, 1, 0, 0, 0, 0, 0, 0)))
            if not self._answer:
                with socket.create_connection((self._to.hostname or "", self._to.port or 0)) as server:
                    back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                    back.start()
                    _copy(client, server)
                    back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_socks_proxy_resolves_the_servers_name(tls, tmp_path):
    with serve(tls=tmp_path if tls else None) as server:
        proxy = SocksProxy(server.url, (b"me", b"p@%41ss"))
        cluster = {"proxy-url": f"socks5://me:p%40%2541ss@{proxy.host}"}
        if tls:
            cluster |= {"certificate-authority": "ca.crt", "tls-server-name": "127.0.0.1"}
        path = kubeconfig(tmp_path / "c", f"http{'s' if tls else ''}://far.invalid:8080", cluster)
        found = read(Connection(kubeconfig=path))
    assert [node.name for node in found.nodes] == ["node-1"]
    assert {*proxy.asked} == {(3, "far.invalid", 8080)}
    assert {*proxy.logins} == {(b"me", b"p@%41ss")}
    assert "Proxy-Authorization" not in server.requests[0].headers


@pytest.mark.usefixtures("home")
def test_what_a_socks_proxy_refuses_is_said_of_it(tmp_path, monkeypatch):
    with serve() as server:
        proxy = SocksProxy(server.url, None, answer=4)
        monkeypatch.setenv("http_proxy", f"socks5://{proxy.host}")
        with pytest.raises(ClusterError) as caught:
            read(Connection(kubeconfig=kubeconfig(tmp_path / "c", "http://far.invalid:8080")))
    assert str(caught.value) == (
        f"far.invalid:8080 through the proxy {proxy.host} cannot be asked: 0x04: Host unreachable; "
        "check the server in the kubeconfig and the network (VPN, proxy, firewall)"
    )
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = f"127.0.0.1:{unused.getsockname()[1]}"
        path = kubeconfig(tmp_path / "c", "http://far.invalid:8080", {"proxy-url": f"socks5://{away}"})
        with pytest.raises(ClusterError) as caught:
            read(Connection(kubeconfig=path))
    assert str(caught.value) == (
        f"far.invalid:8080 through the proxy {away} cannot be asked: connection refused; "
        "check that it runs and the port in the kubeconfig is right"
    )
