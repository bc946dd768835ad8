"""What a command imports, for what it does not import it does not wait for."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_cgaudit.cli.audit import group
from kubectl_cgaudit.cli.commands import COMMANDS, hidden, load
from tests.support import RECORDED_FLAGS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_they_say(name: str) -> None:
    command = load(name)
    assert (command.name, command.get_short_help_str(200)) == (name, COMMANDS[name][1])
    assert command.hidden is hidden(name)


def test_the_group_has_these_commands() -> None:
    context = group.make_context("cgaudit", [], resilient_parsing=True)
    assert group.list_commands(context) == sorted(COMMANDS)


def imported(*arguments: str) -> set[str]:
    """The top-level packages and our own modules that a command has imported when it ends."""
    script = (
        "import sys; from kubectl_cgaudit.cli.main import run; code = run(sys.argv[1:]); "
        "print(chr(10).join(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines())


def test_nothing_that_asks_no_cluster_imports_the_client(tmp_path: Path) -> None:
    saved = tmp_path / "audit.json"
    assert "kubernetes" not in imported(*RECORDED_FLAGS, "-o", f"json={saved}", "-o", "table")
    for arguments in (["--help"], ["convert", "250m"], ["report", str(saved), "-o", f"html={tmp_path / 'x.html'}"]):
        assert not {"kubernetes", "urllib3"} & imported(*arguments)


def test_help_imports_next_to_nothing() -> None:
    ours = {name for name in imported("--help") if name.startswith("kubectl_cgaudit.")}
    assert ours == {
        "kubectl_cgaudit.cli",
        *(
            f"kubectl_cgaudit.cli.{name}"
            for name in (
                "aside",
                "audit",
                "codes",
                "commands",
                "files",
                "main",
                "options",
                "outlet",
                "output",
                "policy",
                "repeatable",
                "spared",
                "terminal",
            )
        ),
        "kubectl_cgaudit.errors",
        "kubectl_cgaudit.report",
        "kubectl_cgaudit.report.escape",
        "kubectl_cgaudit.report.formats",
    }
    assert "msgspec" not in imported("--help")


OLD_PROCESSOR = """
import importlib.util, pathlib, sys
polars = pathlib.Path(importlib.util.find_spec("polars").origin)
made = importlib.util.spec_from_file_location("polars._cpu_check", polars.with_name("_cpu_check.py"))
check = importlib.util.module_from_spec(made)
made.loader.exec_module(check)
flags = check._read_cpu_flags()
check._read_cpu_flags = lambda: {name: name not in ("avx2", "fma") for name in flags}
sys.modules["polars._cpu_check"] = check
from kubectl_cgaudit.cli.main import main
main()
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="only for x86 Polars asks the processor")
def test_a_processor_that_polars_is_not_built_for_is_an_error_in_words() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OLD_PROCESSOR, *RECORDED_FLAGS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: the installed Polars needs features that this processor lacks (avx2, fma); "
        "install the build for older processors beside it: pip install 'polars[rtcompat]'\n"
    )


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_polars_takes_as_many_threads_as_the_process_may_have() -> None:
    """Of a CPU quota Rust's available_parallelism takes account likewise, which Polars asks."""
    script = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "import kubectl_cgaudit.audit.run, polars; print(polars.thread_pool_size())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
