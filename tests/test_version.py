"""`kubectl cgaudit version`: the same facts in three formats, without a cluster."""

import json
import platform
import socket
from typing import Any

import pytest
import yaml

from kubectl_cgaudit import __version__
from kubectl_cgaudit.audit.model import SCHEMA
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.detect.catalogue import catalogue

FACTS = {
    "version": __version__,
    "schemaVersion": SCHEMA,
    "catalogueDate": max(row.date for row in catalogue().rows),
    "python": f"CPython {platform.python_version()}",
    "platform": f"{platform.system().lower()}/{platform.machine().lower()}",
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")


def test_the_formats_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == FACTS
    assert run(["version", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == FACTS
    assert run(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1].strip() for line in lines] == list(FACTS.values())
    assert lines[0] == f"kubectl cgaudit     {__version__}"
