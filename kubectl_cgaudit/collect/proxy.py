"""The proxy that the environment names for a server, as kubectl finds it.

Source: https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config, whose words and order are kept here. ALL_PROXY is none of them.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

_PORTS = {"http": "80", "https": "443"}
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
