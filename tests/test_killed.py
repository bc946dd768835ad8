"""A run that is killed, or broken off, leaves the old report or the new one, and never a part of either."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.cli import output
from kubectl_cgaudit.cli.output import Output
from tests.simulator import Cluster, Simulator, Size, Store
from tests.support import STATES, recorded, rendered, saved

ROOT = Path(__file__).parent.parent
KILLS = 200
# One process without threads, that forks: 200 starts of an interpreter would take minutes.
MURDERER = """
import hashlib, json, os, random, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from kubectl_cgaudit.cli import output
from kubectl_cgaudit.report import formats

folder, kills, point = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
outputs = [output.Output(name, str(folder / f"audit.{name}")) for name in ("html", "json")]
texts = {(age, name): (folder / f"{age}.{name}").read_text() for age in ("old", "new") for name in ("html", "json")}
# Only the writing is of interest: the reports are made, and come in two pieces.
class Json:
    def head(self, age):
        self.text = texts[age, "json"].encode()
        return iter([self.text[:9000]])

    def records(self, table):
        return b""

    def tail(self):
        return iter([self.text[9000:]])


formats.text = lambda name, saved, screen: texts[saved.audit, name]
formats.writer = lambda name: Json()
nothing = SimpleNamespace(frames=lambda: ())
old, new = (SimpleNamespace(audit=age, containers=nothing) for age in ("old", "new"))
whole = {(name, hashlib.sha256((folder / f"{age}.{name}").read_bytes()).hexdigest()): age
         for age in ("old", "new") for name in ("html", "json")}
dice, came = random.Random(11), []


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def child(ready):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sync, replace = os.fsync, Path.replace
    if point == "before it is on the disk":
        os.fsync = lambda handle: die()
    elif point == "on the disk":
        os.fsync = lambda handle: (sync(handle), die())
    elif point == "in its place":
        Path.replace = lambda self, target: (replace(self, target), die())
    os.write(ready, b"x")
    while True:
        output.deliver_audit(new, outputs)
        output.deliver_audit(old, outputs)


def age(path):
    return whole.get((path.suffix[1:], hashlib.sha256(path.read_bytes()).hexdigest()), "damaged")


began = time.monotonic()
output.deliver_audit(new, outputs)
output.deliver_audit(old, outputs)
writing = time.monotonic() - began
for _ in range(kills):
    read, ready = os.pipe()
    killed = os.fork()
    if not killed:
        child(ready)
    os.read(read, 1)
    if point == "any":
        time.sleep(dice.uniform(0, 2 * writing))
        os.kill(killed, signal.SIGKILL)
    status = os.waitpid(killed, 0)[1]
    os.close(read), os.close(ready)
    came.append([os.WTERMSIG(status), *(age(folder / f"audit.{name}") for name in ("html", "json"))])
print(json.dumps(came))
"""
# Pages of 25 pods, so that a small cluster takes as long to read as a large one.
SHORT_PAGES = """
from kubectl_cgaudit.cli.main import main
from kubectl_cgaudit.collect import live, pages

live.pages = lambda api, resource, size: pages.pages(api, resource, 25)
main()
"""


def recorded_saved(to: str) -> Saved:
    return saved(recorded(), STATES.read_text(), to)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An old audit and a new one, and where the reports are written: the old ones are there."""
    for age, to in (("old", "runtime"), ("new", "v2+runtime")):
        for name in ("html", "json"):
            (tmp_path / f"{age}.{name}").write_text(rendered(name, recorded_saved(to)))
    for name in ("html", "json"):
        (tmp_path / f"audit.{name}").write_bytes((tmp_path / f"old.{name}").read_bytes())
    return tmp_path


def kill(folder: Path, kills: int, point: str) -> list[tuple[int, str, str]]:
    """The signal each process died of, and which report was there then: html, json."""
    command = [sys.executable, "-c", MURDERER, str(folder), str(kills), point]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [(number, html, audit) for number, html, audit in json.loads(ran.stdout)]


def left_over(folder: Path) -> list[str]:
    kept = {f"{age}.{name}" for age in ("old", "new", "audit") for name in ("html", "json")}
    return sorted(path.name for path in folder.iterdir() if path.name not in kept)


def test_killed_at_any_moment(folder: Path) -> None:
    came = kill(folder, KILLS, "any")
    assert len(came) == KILLS
    assert {number for number, _, _ in came} == {signal.SIGKILL}
    assert {age for _, *ages in came for age in ages} == {"old", "new"}
    # Each run removed what the one before it left: two reports' parts are the most.
    parts = left_over(folder)
    assert len(parts) <= 2
    assert [name for name in parts if not re.fullmatch(r"\.cgaudit\.\w+\.tmp", name)] == []
    check_next_run(folder)


@pytest.mark.parametrize(
    ("point", "html", "audit", "parts"),
    [
        ("before it is on the disk", "old", "old", 2),
        ("on the disk", "old", "old", 2),
        # The last file that was opened is closed first.
        ("in its place", "old", "new", 1),
    ],
)
def test_killed_where_it_could_hurt(folder: Path, point: str, html: str, audit: str, parts: int) -> None:
    assert kill(folder, 1, point) == [(signal.SIGKILL, html, audit)]
    assert len(left_over(folder)) == parts
    check_next_run(folder)


def check_next_run(folder: Path) -> None:
    """The next run removes what the killed left behind."""
    names = ("html", "json")
    output.deliver_audit(recorded_saved("v2+runtime"), [Output(name, str(folder / f"audit.{name}")) for name in names])
    for name in names:
        assert (folder / f"audit.{name}").read_bytes() == (folder / f"new.{name}").read_bytes()
    assert left_over(folder) == []


def test_ctrl_c_while_a_large_cluster_is_read(tmp_path: Path) -> None:
    cluster = Cluster(Size(12, 230), seed=3)
    store = Store(cluster, tmp_path / "store")
    store.build()
    reports = tmp_path / "reports"
    reports.mkdir()
    with Simulator(cluster, pace=0.3, store=store) as simulator:
        config = simulator.kubeconfig(tmp_path / "config")
        flags = ["--kubeconfig", str(config), "-o", f"json={reports / 'a.json'}", "-o", f"html={reports / 'a.html'}"]
        environment = {**os.environ, "HOME": str(tmp_path)}
        with subprocess.Popen(
            [sys.executable, "-c", SHORT_PAGES, *flags], cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            # When the fourth page is asked for, the first has been worked on: one waits, and one is being worked on.
            while sum(seen.path.startswith("/api/v1/pods?") for seen in simulator.log) < 4:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[1]
    store.close()
    found = re.fullmatch(r"error: interrupted after pods (\d+) of 230; nothing was written\n", said)
    assert found, said
    assert int(found[1]) in range(25, 230, 25)
    assert process.returncode == 130
    assert list(reports.iterdir()) == []
