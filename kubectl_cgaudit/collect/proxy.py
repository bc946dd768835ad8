"""The proxy to a server: the one that the kubeconfig names, or that of the environment as kubectl finds it.

Source: https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config, whose words and order are kept here. ALL_PROXY is none of them.
"""

import base64
import ipaddress
import re
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from msgspec import Struct

from kubectl_cgaudit.errors import ClusterError

CORRECT = "correct proxy-url or HTTPS_PROXY"
_SCHEMES = ("http", "https", "socks5", "socks5h")
_LOGIN = re.compile(r"(?:[^/?#\[\]\\%]|%[0-9A-Fa-f]{2})*")
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:/?#\[\]\\]+)(?::([0-9]{1,5}))?(?:[/?#].*)?")
_LAST_PORT = 65535
_PORTS = {"http": "80", "https": "443"}
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxy(Struct, frozen=True):
    """A proxy, its login kept out of its URL: no text that a library makes of the URL can show it."""

    url: str
    user: str = ""
    password: str = ""
    authorization: str = ""
    """The header that logs in to an HTTP proxy; empty without a login."""


def parsed(text: str) -> Proxy:
    """Return the proxy of `proxy-url` or HTTPS_PROXY; without a scheme it is http, as for kubectl.

    Raises ClusterError, which repeats nothing that may belong to the login, as everything before the last @ may.
    """
    before, separator, after = text.partition("://")
    scheme, rest = (before.lower(), after) if separator else ("http", text)
    if scheme not in _SCHEMES:
        _refuse("its URL begins with none of http://, https:// and socks5://")
    if not text.isprintable() or " " in text:
        _refuse("its URL holds a space or a control character")
    login, _, place = rest.rpartition("@")
    if not _LOGIN.fullmatch(login):
        _refuse("its login holds a character to be percent-encoded (# as %23, / as %2F, ? as %3F, % as %25)")
    found = _PLACE.fullmatch(place)
    if not found or (found[2] and not 0 < int(found[2]) <= _LAST_PORT):
        _refuse("its URL names no host with a port from 1 to 65535")
    # A SOCKS proxy resolves the server's name, as it does for kubectl: urllib3 has a scheme of its own for that.
    url = f"{'socks5h' if scheme == 'socks5' else scheme}://{found[1]}{f':{found[2]}' if found[2] else ''}"
    if not login:
        return Proxy(url)
    user, _, password = login.partition(":")
    # In UTF-8, as Go sends it.
    encoded = base64.b64encode(unquote_to_bytes(f"{user}:{password}")).decode()
    return Proxy(url, unquote(user), unquote(password), f"Basic {encoded}")


def _refuse(why: str) -> NoReturn:
    raise ClusterError(f"the proxy cannot be used: {why}; {CORRECT}")


def of_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """The proxy to ask a server through; None where it is asked itself."""
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    proxy = _first(environment, name)
    if not proxy or _is_local(parts.hostname or ""):
        return None
    port = str(parts.port or _PORTS.get(parts.scheme, ""))
    excepted = _first(environment, "no_proxy").split(",")
    if any(_excepts(entry.strip().lower(), parts.hostname or "", port) for entry in excepted):
        return None
    return proxy


def _first(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _excepts(entry: str, host: str, port: str) -> bool:
    """Whether an entry of NO_PROXY speaks of a host, which is in small letters, and its port."""
    if entry == "*":
        return True
    address, network = _address(host), _network(entry)
    if network is not None:
        return address is not None and address in network
    name, of_port = _split(entry)
    if of_port not in ("", port):
        return False
    own = _address(name)
    if own is not None or address is not None:
        return own == address
    domain = name[1:] if name.startswith("*.") else name
    return bool(domain) and (host.endswith(f".{domain.removeprefix('.')}") or host == domain)


def _split(entry: str) -> tuple[str, str]:
    """Name or address of an entry, and its port if it names one: `a.example:443`, `[fd00::1]:443`, `fd00::1`."""
    if _address(entry) is not None:
        return entry, ""
    name, _, port = entry.rpartition(":")
    return (name.removeprefix("[").removesuffix("]"), port) if name else (entry, "")


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    _, slash, bits = entry.partition("/")
    try:
        # Go knows no netmasks there.
        return ipaddress.ip_network(entry, strict=False) if slash and bits.isdecimal() else None
    except ValueError:
        return None


def _address(text: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
