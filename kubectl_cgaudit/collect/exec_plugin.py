"""The exec plugin of a kubeconfig, run as kubectl runs it: its own words go to the user's standard error as it says them.

The client's provider keeps them back unless standard output is a terminal, so that `-o json > FILE` would wait for a log-in
that nobody was told of. Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import atexit
import os
import subprocess
import sys
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect.kubeconfig import LOG_IN, Fields
from kubectl_cgaudit.errors import ClusterError


class _Variable(Struct):
    name: str
    value: str


class _Plugin(Struct, rename="camel"):
    api_version: str
    command: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    interactive_mode: Literal["Never", "IfAvailable", "Always"] | None = None
    provide_cluster_info: bool | None = None
    install_hint: str | None = None


class Credential(Struct, rename="camel"):
    """What a plugin gives: a token, or certificate and key as PEM."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """The server decides whether it has ended, as with kubectl: this machine's clock may be wrong."""


class _Answer(Struct, rename="camel"):
    api_version: str
    kind: Literal["ExecCredential"]
    status: Credential


def ask(fields: object, cluster: Fields, where: str) -> Credential:
    """What the plugin of `where` answers. Raises ClusterError where it is not there, fails, or gives nothing."""
    try:
        plugin = msgspec.convert(fields, _Plugin)
    except msgspec.ValidationError as error:
        raise ClusterError(f"the exec plugin of {where} cannot be run: {error}; correct the kubeconfig") from None
    named = f"the exec plugin {plugin.command} of {where}"
    interactive = plugin.interactive_mode != "Never" and _is_terminal()
    if plugin.interactive_mode == "Always" and not interactive:
        raise ClusterError(f"{named} asks questions, and standard input is no terminal; run it in one, or log in first")
    try:
        information = _information(plugin, cluster, interactive=interactive)
    except (TypeError, ValueError, RecursionError):
        raise ClusterError(
            f"{named} cannot be told of the cluster: its entry is malformed; correct its extensions"
        ) from None
    words = _run(plugin, information, named, interactive=interactive)
    try:
        answer = msgspec.json.decode(words, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClusterError(f"{named} printed no ExecCredential: {error}; {LOG_IN}") from None
    if answer.api_version != plugin.api_version:
        versions = f"{answer.api_version}, not {plugin.api_version}"
        raise ClusterError(f"{named} speaks {versions}; correct apiVersion in the kubeconfig, or update the plugin")
    given = answer.status
    if not (given.token or (given.client_certificate_data and given.client_key_data)):
        raise ClusterError(f"{named} gave neither token nor certificate; {LOG_IN}")
    return given


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _information(plugin: _Plugin, cluster: Fields, *, interactive: bool) -> str:
    """What the plugin is told, in KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        told = {name: value for name, value in cluster.items() if name != "extensions"}
        for extension in cluster.get("extensions") or ():
            if isinstance(extension, dict) and extension.get("name") == "client.authentication.k8s.io/exec":
                told["config"] = extension.get("extension")
        spec["cluster"] = told
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _run(plugin: _Plugin, information: str, named: str, *, interactive: bool) -> bytes:
    added = {each.name: each.value for each in plugin.env or ()}
    try:
        child = subprocess.Popen(  # noqa: S603 - the kubeconfig's own command, as kubectl runs it
            [plugin.command, *(plugin.args or ())],
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | added | {"KUBERNETES_EXEC_INFO": information},
            # There commands such as az are scripts, which only a shell finds.
            shell=sys.platform == "win32",
        )
    except FileNotFoundError:
        hint = " ".join((plugin.install_hint or "").split())[:200]
        raise ClusterError(f"{named} is not installed; {hint or 'install it, then try again'}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ClusterError(f"{named} cannot be run: {why}; correct the kubeconfig") from None
    words = _words(child)
    if child.returncode:
        ended = (
            f"failed with exit code {child.returncode}"
            if child.returncode > 0
            else f"ended by signal {-child.returncode}"
        )
        raise ClusterError(f"{named} {ended}; what it said stands above; {LOG_IN}")
    return words


def _words(child: "subprocess.Popen[bytes]") -> bytes:
    """What it prints until it ends. It never outlives this program, not even where the thread that waits for it is left."""
    atexit.register(child.kill)
    with child:
        try:
            return child.communicate()[0]
        except BaseException:
            child.kill()
            raise
        finally:
            atexit.unregister(child.kill)
