"""What an ordinary user meets: folders and files that are somebody else's, and a terminal that can do nothing."""

import contextlib
import os
import pty
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ordinary_user
from tests.ordinary_user import as_ordinary_user, hand_over, own_folder
from tests.support import container, listed, node, pod
from tests.vcr_support import kubeconfig

PASSES_BY = "make it readable for you, or name another"
OTHER_CONFIG = "give --kubeconfig FILE, set KUBECONFIG, or audit saved objects with -f FILE"
REFUSED = "127.0.0.1:1 cannot be asked: connection refused; check that it runs and the port in the kubeconfig is right"
SERVER = "https://127.0.0.1:1"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """What an ordinary user may read and write, with what they may not in it."""
    with own_folder() as made:
        for path, mode in (("shut", 0o555), ("closed", 0o000), ("answers", 0o755), ("free", 0o755)):
            (made / path).mkdir(mode=mode)
            hand_over(made / path)
        (made / "c.json").write_text(listed(node(), pod("p", container("c", "1"))))
        for path in ("secret", "answers/n1.configz.txt"):
            (made / path).write_text("{}")
            (made / path).chmod(0o000)
        kubeconfig(made / "config", SERVER, user={"token": "t"})
        kubeconfig(made / "token", SERVER, user={"tokenFile": "secret"})
        kubeconfig(made / "authority", SERVER, cluster={"certificate-authority": "secret"})
        kubeconfig(made / "key", SERVER, user={"client-certificate": "c.json", "client-key": "secret"})
        kubeconfig(made / "certificate", SERVER, user={"client-certificate": "secret", "client-key": "c.json"})
        yield made
        (made / "closed").chmod(0o700)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-f", "c.json", "-o", "json=shut/a"), 1, "shut/a cannot be written: Permission denied; choose another path"),
        (
            ("tree", "-f", "c.json", "-o", "text=shut/a"),
            1,
            "shut/a cannot be written: Permission denied; choose another path",
        ),
        (
            ("snapshot", "-f", "c.json", "-o", "shut/a"),
            1,
            "shut/a cannot be written: Permission denied; choose another path",
        ),
        (
            ("report", "c.json", "-o", "html=closed/a"),
            1,
            "closed/a cannot be written: Permission denied; choose another path",
        ),
        (("-f", "secret"), 1, f"secret cannot be read: Permission denied; {PASSES_BY}"),
        (("nodes", "-f", "closed/c.json"), 1, f"closed/c.json cannot be read: Permission denied; {PASSES_BY}"),
        (("report", "secret"), 1, f"secret cannot be read: Permission denied; {PASSES_BY}"),
        (("diff", "c.json", "secret"), 1, f"secret cannot be read: Permission denied; {PASSES_BY}"),
        (("-f", "c.json", "--baseline", "secret"), 1, f"secret cannot be read: Permission denied; {PASSES_BY}"),
        (
            ("-f", "c.json", "--states", "secret"),
            2,
            f"the states file secret cannot be read: Permission denied; {PASSES_BY}",
        ),
        (
            ("-f", "c.json", "--policy", "secret"),
            2,
            f"the policy file secret cannot be read: Permission denied; {PASSES_BY}",
        ),
        (
            ("verify", "-f", "c.json", "--kubelet=files:closed"),
            1,
            "closed cannot be read: Permission denied; name a folder of saved kubelet answers",
        ),
        (
            ("--kubeconfig", "secret"),
            1,
            f"the kubeconfig secret cannot be read: Permission denied; {OTHER_CONFIG}",
        ),
        (
            ("--kubeconfig", "closed/config"),
            1,
            f"the kubeconfig closed/config cannot be read: Permission denied; {OTHER_CONFIG}",
        ),
        (
            ("--kubeconfig", "token"),
            1,
            "the tokenFile of context mixed cannot be read: Permission denied; log in again, or correct the kubeconfig",
        ),
        *(
            (
                ("--kubeconfig", config),
                1,
                f"the {name} FOLDER/secret of context mixed cannot be read: Permission denied; make it readable for you, or "
                "correct the kubeconfig",
            )
            for config, name in (
                ("authority", "certificate-authority"),
                ("certificate", "client-certificate"),
                ("key", "client-key"),
            )
        ),
    ],
    ids=str,
)
def test_what_may_not_be_read_or_written_is_one_sentence(
    words: tuple[str, ...], code: int, said: str, folder: Path
) -> None:
    done = as_ordinary_user(folder, *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"error: {said.replace('FOLDER', str(folder))}\n"


def test_a_saved_answer_that_may_not_be_read_is_a_gap(folder: Path) -> None:
    done = as_ordinary_user(folder, "verify", "-f", "c.json", "--kubelet=files:answers")
    assert done.returncode == 3
    assert "/configz could not be read (n1.configz.txt: Permission" in done.stdout
    assert done.stderr == ""


def test_a_kubeconfig_that_everybody_may_read_is_read_without_a_word_as_kubectl_does(folder: Path) -> None:
    for mode in (0o644, 0o666, 0o600):
        (folder / "config").chmod(mode)
        hand_over(folder / "config")
        done = as_ordinary_user(folder, environment={"KUBECONFIG": "config"})
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {REFUSED}\n")


def test_a_report_does_not_open_its_folder_and_is_the_users_own(folder: Path) -> None:
    done = as_ordinary_user(folder, "-f", "c.json", "-o", "json=free/a.json")
    assert (done.returncode, done.stderr) == (0, "wrote json to free/a.json\n")
    found = (folder / "free" / "a.json").stat()
    owner = ordinary_user.NOBODY if os.geteuid() == 0 else os.geteuid()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, owner)
    assert [each.name for each in (folder / "free").iterdir()] == ["a.json"]


@pytest.mark.parametrize("words", [("-f", "none", "-o", "json={}"), ("snapshot", "-f", "none", "-o", "{}")], ids=str)
def test_somebody_elses_file_in_a_folder_of_everybody_is_named_at_once(words: tuple[str, ...], folder: Path) -> None:
    """Before a cluster is read: it could not be replaced in the end."""
    with tempfile.NamedTemporaryFile() as file:
        # Where no root runs this, /tmp holds files of root for it.
        path = file.name if os.geteuid() == 0 else _of_somebody_else()
        done = as_ordinary_user(folder, *(word.format(path) for word in words))
    said = f"{path} cannot be written: it belongs to somebody else; choose another path"
    assert (done.returncode, done.stderr) == (1, f"error: {said}\n")


def _of_somebody_else() -> str:
    for each in Path(tempfile.gettempdir()).iterdir():
        if each.lstat().st_uid != os.geteuid() and stat.S_ISREG(each.lstat().st_mode):
            return str(each)
    return pytest.skip("nobody else has a file in the temporary folder")


def test_a_run_that_may_not_write_temporary_files_removes_none(folder: Path) -> None:
    done = as_ordinary_user(folder, "--kubeconfig", "config", environment={"TMPDIR": str(folder / "closed")})
    assert (done.returncode, done.stderr) == (1, f"error: {REFUSED}\n")


@pytest.mark.parametrize(
    "words", [("-f", "c.json"), ("nodes", "-f", "c.json"), ("tree", "-f", "c.json"), ("--help",)], ids=str
)
def test_a_dumb_terminal_gets_nothing_but_lines(words: tuple[str, ...], folder: Path) -> None:
    ours, theirs = pty.openpty()
    written: list[bytes] = []

    def read() -> None:
        # Where the other end is closed Linux says so by an error.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                written.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    done = as_ordinary_user(folder, *words, environment={"TERM": "dumb"}, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    reader.join(30)
    os.close(ours)
    data = b"".join(written).replace(b"\r\n", b"\n")
    assert (done.returncode, data.count(b"\n") > 5) in ((0, True), (3, True))
    assert [byte for byte in data if byte < 0x20 and byte != 0x0A] == []
