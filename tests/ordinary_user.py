"""Run the program as an ordinary user, whoever runs the tests: root may read and write everything, and so shows nothing."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import container, listed, node, pod

NOBODY = 65534
ROOT = Path(__file__).parent.parent
# Nobody may be able to read neither the interpreter's folder nor this one, so all of it is imported and used before root is left.
PROGRAM = """
import contextlib, os, sys
from pathlib import Path
warm, words = Path(sys.argv[1]), sys.argv[2:]
from kubectl_cgaudit.cli.main import main, run
if os.geteuid() == 0:
    import kubernetes, requests_oauthlib
    out, error = os.dup(1), os.dup(2)
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    for name in ("table", "html", "json", "yaml"):
        run(["-f", str(warm / "c.json"), "--states", str(warm / "s.yaml"), "-o", f"{name}={warm / 'out'}"])
    run(["snapshot", "-f", str(warm / "c.json"), "-o", str(warm / "s.json")])
    run(["verify", "-f", str(warm / "c.json"), f"--kubelet=files:{warm}"])
    run(["report", str(warm / "out"), "--policy", str(warm / "s.yaml")])
    run(["diff", str(warm / "c.json"), str(warm / "c.json")])
    run(["--kubeconfig", str(warm / "k"), "--request-timeout=1s"])
    sys.stdout.flush()
    for old, number in ((out, 1), (error, 2)):
        os.dup2(old, number)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.argv[1:] = words
main()
"""


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder that belongs to the ordinary user, in one that everybody may enter: pytest's are their owner's alone."""
    with tempfile.TemporaryDirectory(prefix="cgaudit-test-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        hand_over(folder)
        yield folder


def hand_over(*paths: Path) -> None:
    """Make these the ordinary user's."""
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def as_ordinary_user(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None, **more: Any
) -> "subprocess.CompletedProcess[str]":
    """Run the program in this folder, which is its home too."""
    with tempfile.TemporaryDirectory() as warm:
        at = Path(warm)
        (at / "c.json").write_text(listed(node(), pod("p", container("c", "1"))))
        (at / "s.yaml").write_text("- {cgroup: v2}\n")
        (at / "k").write_text(
            "{current-context: a, contexts: [{name: a, context: {cluster: a}}],"
            " clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]}"
        )
        usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        clean = {
            key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")
        }
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, warm, *words],
            cwd=folder,
            env={**clean, "HOME": str(folder), "PYTHONPATH": str(ROOT), **(environment or {})},
            text=True,
            check=False,
            timeout=120,
            **(usual | more),
        )
