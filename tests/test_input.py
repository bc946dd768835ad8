"""Inputs are read to a limit: what never ends, and what unpacks to more than anybody meant, is one sentence."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_cgaudit.audit.saved import REMEDY
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import files
from kubectl_cgaudit.collect.advice import SAVE
from kubectl_cgaudit.collect.input import LIMIT, read_bytes, read_settings
from kubectl_cgaudit.collect.kubeconfig import NEXT
from kubectl_cgaudit.errors import CgauditError
from tests.support import GOLDEN, command, container, listed, node, pod

MIB = 1 << 20
MORE = "if that is right, set CGAUDIT_MAX_INPUT_SIZE to more, such as 16Gi"


@pytest.fixture
def one_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1Mi")


def printed_by_kubectl(spaces: int = 0) -> bytes:
    items = [{"apiVersion": "v1", **each} for each in (node(), pod("p", container("c", "1")))]
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": " " * spaces}}
    return json.dumps(whole, indent=4, sort_keys=True).encode() + b"\n"


@pytest.mark.parametrize(
    "words",
    [
        ("-f", "{}"),
        ("nodes", "-f", "{}"),
        ("tree", "-f", "{}"),
        ("explain", "default/p", "-f", "{}"),
        ("verify", "-f", "{}"),
        ("snapshot", "-f", "{}", "-o", "s.json"),
        ("report", "{}"),
        ("diff", "{}", "{}"),
        ("-f", "small.json", "--baseline", "{}"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.usefixtures("one_mib", "small")
def test_a_file_that_is_too_large_is_one_sentence(
    words: tuple[str, ...],
    packed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = b"{" + b" " * MIB
    Path("big").write_bytes(gzip.compress(text) if packed else text)
    assert run([word.format("big") for word in words]) == 1
    unpacked = " unpacked" if packed else ""
    assert capsys.readouterr() == ("", f"error: big holds more than 1Mi{unpacked}; {MORE}\n")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.usefixtures("one_mib")
def test_what_is_read_object_by_object_is_counted_too(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(pack(printed_by_kubectl()))
    assert len(files.read((str(path),), lambda _namespace, _labels: True, "").pods) == 1
    path.write_bytes(pack(printed_by_kubectl(MIB)))
    with pytest.raises(CgauditError, match=rf"^{path} holds more than 1Mi"):
        files.read((str(path),), lambda _namespace, _labels: True, "")


@pytest.mark.parametrize(
    ("said", "most"),
    [
        ("1000", 1000),
        ("2k", 2000),
        ("2K", 2000),
        ("2Ki", 2048),
        ("1M", 10**6),
        ("1Mi", MIB),
        ("3G", 3 * 10**9),
        ("1Ti", 1 << 40),
        ("", 4 << 30),
    ],
)
def test_the_limit_is_a_quantity_and_what_just_fits_is_read(
    said: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, said)
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(most + 1)
    with pytest.raises(CgauditError, match=rf"^{path} holds more than {said or '4Gi'}; {MORE}$"):
        read_bytes(str(path), "")
    if most <= MIB:
        path.write_bytes(gzip.compress(b"x" * most))
        assert len(read_bytes(str(path), "")) == most
        path.write_bytes(gzip.compress(b"x" * (most + 1)))
        with pytest.raises(CgauditError, match=rf"^{path} holds more than {said} unpacked; {MORE}$"):
            read_bytes(str(path), "")


@pytest.mark.parametrize("said", ["much", "0", "-1", "1.5Gi", "4GB", "\u0664", "1" * 10, "4 Gi"])
def test_a_limit_that_is_no_size_is_wrong_usage(
    said: str, small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(LIMIT, said)
    assert run(["-f", str(small)]) == 2
    why = f"{LIMIT} is {said!r}, which is no size such as 16Gi; correct it, or unset it"
    assert capsys.readouterr() == ("", f"error: {why}\n")


@pytest.mark.parametrize("words", [("-f", "{}"), ("report", "{}"), ("diff", "{}", "small.json")], ids=" ".join)
@pytest.mark.usefixtures("one_mib")
def test_a_pipe_that_never_ends_is_stopped(words: tuple[str, ...], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "small.json").write_text(listed(node()))

    def feed() -> None:
        try:
            with pipe.open("wb", buffering=0) as file:
                while True:
                    file.write(b"[" * 65536)
        except BrokenPipeError:
            pass

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    flags = command(*(word.format(pipe) for word in words))
    done = subprocess.run(flags, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    feeder.join(10)
    assert (done.returncode, done.stderr) == (1, f"error: {pipe} holds more than 1Mi; {MORE}\n")
    assert not feeder.is_alive()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("words", [("-f", "-"), ("report", "-"), ("snapshot", "-f", "-", "-o", "s.json")], ids=" ".join)
@pytest.mark.usefixtures("one_mib")
def test_standard_input_has_the_same_limit(words: tuple[str, ...], pack: Callable[[bytes], bytes]) -> None:
    done = subprocess.run(command(*words), input=pack(b"[" * (2 * MIB)), capture_output=True, check=False, timeout=60)
    unpacked = " unpacked" if pack is gzip.compress else ""
    said = f"error: standard input holds more than 1Mi{unpacked}; {MORE}\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)


def test_standard_input_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    standard = io.TextIOWrapper(io.BytesIO(b"{}"))
    monkeypatch.setattr("sys.stdin", standard)
    assert read_bytes("-", "") == b"{}"
    assert not standard.buffer.closed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-f", "/dev/zero"), f"/dev/zero is neither JSON nor YAML; {SAVE}"),
        (("report", "/dev/zero"), f"/dev/zero is neither JSON nor YAML; {REMEDY}"),
        (("-f", "small.json", "--baseline", "/dev/zero"), f"/dev/zero is neither JSON nor YAML; {REMEDY}"),
        (
            ("-f", "small.json", "--states", "/dev/zero"),
            "the states file /dev/zero cannot be read: it is larger than 16 MiB; check the path",
        ),
        (
            ("-f", "small.json", "--policy", "/dev/zero"),
            "the policy file /dev/zero cannot be read: it is larger than 16 MiB; check the path",
        ),
        (
            ("-f", "small.json", "--to", "/dev/zero"),
            "the states file /dev/zero cannot be read: it is larger than 16 MiB; check the path",
        ),
        (
            ("--kubeconfig", "/dev/zero"),
            f"the kubeconfig /dev/zero cannot be read: it is larger than 16 MiB; {NEXT}",
        ),
    ],
    ids=str,
)
@pytest.mark.usefixtures("small", "home")
def test_a_device_without_an_end_is_refused(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(list(words)) in (1, 2)
    assert capsys.readouterr() == ("", f"error: {said}\n")


BOMB = """
import resource, sys
from kubectl_cgaudit.cli.main import run
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
sys.exit(run(sys.argv[1:]))
"""


def test_a_file_of_gzip_takes_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    """Sixteen GiB of blanks, in sixteen megabytes: all of them would be held."""
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"{") + gzip.compress(b" " * (16 * MIB)) * 1024)
    done = subprocess.run(
        [sys.executable, "-c", BOMB, "-f", str(path)],
        env={**os.environ, LIMIT: "64Mi"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, f"error: {path} holds more than 64Mi unpacked; {MORE}\n")


def test_several_members_of_gzip_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "c.gz"
    text = (GOLDEN / "nodes.json").read_bytes()
    path.write_bytes(gzip.compress(text[:1000]) + gzip.compress(text[1000:]))
    assert read_bytes(str(path), "") == text


def test_a_small_file_is_read_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * MIB)
    assert len(read_settings(path, MIB)) == MIB
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(OSError, match=r"it is larger than 1 MiB$"):
        read_settings(path, MIB)
