"""The release archive of this platform: built twice, unpacked in an empty folder, run with nothing but Python."""

import hashlib
import io
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from kubectl_cgaudit import __version__
from tests.support import RECORDED_FLAGS
from tools.release import fetch, lock, manifest, packages, tree, wheels, windows
from tools.release.archive import pack
from tools.release.platforms import PLATFORMS, PYTHONS

ROOT = Path(__file__).parent.parent
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
HERE = f"{platform.system().lower()}-{MACHINES.get(platform.machine(), 'unknown')}"
EPOCH = 1_700_000_000
USES = re.compile(r"uses: (\S+)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders from two builds, each in an environment of its own, at another hour and with another umask; the second finds
    the wheels of the dependencies where the first has put them.
    """
    if HERE not in [each.name for each in PLATFORMS] or os.name == "nt":
        pytest.skip(f"no archive is tried on {HERE}")
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    for folder, zone, mask in zip(folders, ("UTC", "Asia/Tokyo"), (0o022, 0o077), strict=True):
        command = [sys.executable, "-m", "tools.release", "--platform", HERE, "--out", str(folder)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH), "TZ": zone},
            umask=mask,
            capture_output=True,
            text=True,
            check=False,
        )
        # A wheel with another hash than the lock's is a failure, and says so in other words.
        if "DownloadError: ERROR: No matching distribution" in done.stderr:
            pytest.skip(f"offline: the wheels cannot be downloaded ({done.stderr.strip().splitlines()[-1]})")
        assert done.returncode == 0, done.stderr
    return folders


@pytest.fixture(scope="module")
def plugin(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive behind a symbolic link, as krew installs it."""
    folder = tmp_path_factory.mktemp("krew")
    with tarfile.open(built[0] / manifest.name(HERE, "tar.gz")) as archive:
        archive.extractall(folder / "store", filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(
            folder / "store"
        )
    (folder / "bin").mkdir()
    link = folder / "bin" / "kubectl-cgaudit"
    link.symlink_to(Path("..", "store", "kubectl-cgaudit"))
    return link


def run(plugin: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with Python on the PATH and nothing else in the environment: no site-packages, no home."""
    python = plugin.parent.parent / "python"
    if not python.exists():
        python.mkdir()
        (python / "python3").symlink_to(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
    return subprocess.run(
        [str(plugin), *arguments],
        env={"PATH": str(python)},
        cwd=python,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_runs_with_nothing_but_python(plugin: Path) -> None:
    asked = run(plugin, "--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.startswith("Usage: kubectl cgaudit [OPTIONS] [COMMAND] [ARGS]...\n")
    said = json.loads(run(plugin, "version", "-o", "json").stdout)
    assert said["version"] == __version__
    assert said["python"] == f"CPython {platform.python_version()}"
    assert json.loads(run(plugin, "convert", "250m", "-o", "json").stdout)["shares"] == 256


def test_it_audits_as_the_installed_tool_does(plugin: Path) -> None:
    words = [*RECORDED_FLAGS, "--reproducible", "-o", "json"]
    ours = run(plugin, *words)
    assert (ours.returncode, ours.stderr) == (0, "")
    command = [sys.executable, "-m", "kubectl_cgaudit", *words]
    installed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ours.stdout == installed.stdout


def test_the_client_works_without_its_asynchronous_half(plugin: Path, tmp_path: Path) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    asked = run(plugin, "--kubeconfig", str(tmp_path / "config"))
    assert asked.returncode == 1
    assert asked.stderr.startswith("error: 127.0.0.1:9 cannot be asked: connection refused;")


def test_a_python_that_is_too_old_is_named(plugin: Path) -> None:
    # Where only Pythons without compiled parts are found: the archive's are taken away.
    store = plugin.resolve().parent
    kept = store / "lib" / "msgspec"
    kept.rename(store / "away")
    try:
        kept.mkdir()
        said = run(plugin, "version")
    finally:
        kept.rmdir()
        (store / "away").rename(kept)
    assert said.returncode == 1
    assert said.stderr.startswith(
        "error: this kubectl cgaudit needs CPython 3.11 to 3.14 on the PATH, found cpython 3."
    )


def test_what_the_tests_install_is_no_part_of_the_source_distribution() -> None:
    """The same commit gives the same bytes, whether its tests were run there or not."""
    said: dict[str, set[str]] = {"graft": set(), "prune": set()}
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        command, *folders = line.split()
        said.setdefault(command, set()).update(folders)
    ignored = {
        f"{each.parent.relative_to(ROOT)}/{line.rstrip('/')}"
        for folder in said["graft"]
        for each in (ROOT / folder).glob("*/.gitignore")
        for line in each.read_text().split()
    }
    assert ignored == said["prune"] == {"tests/browser/node_modules"}


def test_two_builds_are_the_same_bytes(built: tuple[Path, Path]) -> None:
    names = [sorted(path.name for path in folder.iterdir()) for folder in built]
    assert names[0] == names[1]
    assert names[0] == sorted(
        [
            "SHA256SUMS",
            "cgaudit.yaml",
            f"kubectl-cgaudit-v{__version__}.cdx.json",
            manifest.name(HERE, "tar.gz"),
            f"kubectl_cgaudit-{__version__}-py3-none-any.whl",
            f"kubectl_cgaudit-{__version__}.tar.gz",
        ]
    )
    for name in names[0]:
        assert (built[0] / name).read_bytes() == (built[1] / name).read_bytes()


def test_a_setuptools_with_another_hash_builds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's package of the same name and version, where pip looks: it would write what everybody installs."""
    (version,) = re.findall(r"^setuptools==(\S+)", (ROOT / "requirements-build.lock").read_text(), re.MULTILINE)
    tampered = tmp_path / "index" / f"setuptools-{version}-py3-none-any.whl"
    tampered.parent.mkdir()
    about = f"setuptools-{version}.dist-info"
    ran = tmp_path / "ran"
    with ZipFile(tampered, "w") as wheel:
        wheel.writestr("setuptools/__init__.py", "")
        wheel.writestr("setuptools/build_meta.py", f"open({str(ran)!r}, 'w').close()\n")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: setuptools\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tampered.parent))
    with pytest.raises(wheels.DownloadError, match="DO NOT MATCH THE HASHES"):
        packages.build(EPOCH)
    assert not ran.exists()


def test_a_wheel_that_was_replaced_after_its_download_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"as it was downloaded"

    def download(_wanted: object, folder: Path, *_: object) -> None:
        folder.mkdir()
        (folder / "click-1-py3-none-any.whl").write_bytes(data)

    monkeypatch.setattr(wheels, "download", download)
    monkeypatch.setattr(lock, "read", lambda: (lock.Pin("click", "1", True, (hashlib.sha256(data).hexdigest(),)),))
    platform = replace(PLATFORMS[0], pythons=())
    (wheel,) = fetch.fetch(platform, tmp_path)
    assert [*fetch.fetch(platform, tmp_path)] == [wheel]
    wheel.write_bytes(b"as somebody left it")
    with pytest.raises(
        wheels.DownloadError, match=r"click-1-py3-none-any.whl is not what requirements.lock names; remove "
    ):
        [*fetch.fetch(platform, tmp_path)]


def test_only_files_of_the_commit_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = ["kubectl_cgaudit/left.py", "kubectl_cgaudit/__pycache__/a.pyc", "kubectl_cgaudit.egg-info/SOURCES.txt"]
    for name in ["kubectl_cgaudit/a.py", "docs/a.md", *left]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(tree, "ROOT", tmp_path)
    # Not in a clone everything counts but what building leaves behind.
    assert sorted(map(str, tree.sources())) == ["docs/a.md", "kubectl_cgaudit/a.py", "kubectl_cgaudit/left.py"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "kubectl_cgaudit/a.py", "docs/a.md"], check=True)
    assert sorted(map(str, tree.sources())) == ["docs/a.md", "kubectl_cgaudit/a.py"]


def test_everything_that_pip_installs_has_its_hash() -> None:
    """In the image, in what CI and a release run, and in what they call: what is here by its hash, or what is here already."""
    scripts = [ROOT / "Makefile", ROOT / "Containerfile", *(ROOT / ".ci").iterdir()]
    scripts += (ROOT / ".github" / "workflows").iterdir()
    found = {
        script.name: [
            command.strip()
            for line in script.read_text().replace("\\\n", " ").splitlines()
            for command in re.split(r"&&|;", line)
            if re.search(r"\bpipx?\b.*\b(install|download|wheel)\b", command) and not line.startswith("#")
        ]
        for script in scripts
    }
    assert {name: len(commands) for name, commands in found.items() if commands} == {"Makefile": 2, "Containerfile": 4}
    for command in itertools.chain.from_iterable(found.values()):
        # A source distribution would bring what it is built with, which has no hash.
        hashed = {"--require-hashes", "--only-binary"} <= {*command.split()}
        assert hashed or "--no-index" in command, command
    for lock_file in ROOT.glob("requirements*.lock"):
        entries = re.split(r"\n(?=\S)", lock_file.read_text())
        assert [each for each in entries if not each.startswith("#") and "--hash=sha256:" not in each] == [], lock_file
    assert len([*ROOT.glob("requirements*.lock")]) == 3
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE))
    wanted = [*package["project"]["dependencies"], *package["project"]["optional-dependencies"]["dev"]]
    assert {re.split(r"[\[<>=]", each)[0].lower() for each in wanted} <= locked


def test_two_machines_build_a_release_and_nothing_is_published_that_differs() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["build"]["strategy"]["matrix"] == {"artifact": ["dist", "dist-again"]}
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step][1:] == ["make dist"]
    assert jobs["build"]["steps"][-1]["with"]["name"] == "${{ matrix.artifact }}"
    assert jobs["compare"]["needs"] == "build"
    fetched = [step["with"] for step in jobs["compare"]["steps"] if "uses" in step]
    assert fetched == [{"name": name, "path": name} for name in ("dist", "dist-again")]
    assert [step["run"] for step in jobs["compare"]["steps"] if "run" in step] == ["diff -r dist dist-again"]
    for name in ("try", "attest", "github", "pypi", "krew"):
        job = name
        while job != "compare":
            job = jobs[job]["needs"]


def test_the_archive_is_sorted_dated_and_clean(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0] / manifest.name(HERE, "tar.gz")) as archive:
        entries = archive.getmembers()
    names = [entry.name for entry in entries]
    assert names == sorted(names)
    assert {entry.mtime for entry in entries} == {EPOCH}
    assert {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {(0, 0, "", "")}
    assert {entry.name for entry in entries if entry.mode != 0o644} == {"kubectl-cgaudit", "kubectl_complete-cgaudit"}
    assert not [name for name in names if "__pycache__" in name or name.startswith("lib/kubernetes/aio/")]
    assert "LICENSE" in names
    compiled = {found[1] for name in names if (found := re.search(r"msgspec/_core\.\w+-3(\d\d)", name))}
    assert compiled == {"11", "12", "13", "14"}
    for pin in lock.read():
        if pin.name != lock.LAUNCHER:
            assert [name for name in names if name.startswith(f"licenses/{pin.name}-{pin.version}/")], pin.name


def test_checksums_and_manifest_are_of_the_archives(built: tuple[Path, Path]) -> None:
    folder = built[0]
    listed = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())  # type: ignore[misc]
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert listed == {name: value for name, value in files.items() if name != "SHA256SUMS"}
    filled: dict[str, Any] = yaml.safe_load((folder / "cgaudit.yaml").read_text())
    template: dict[str, Any] = yaml.safe_load((ROOT / "plugin.yaml").read_text())
    for entry, blank in zip(filled["spec"]["platforms"], template["spec"]["platforms"], strict=True):
        name = entry["uri"].rpartition("/")[2]
        assert entry == blank | {"sha256": files.get(name, "0" * 64)}
    assert filled["spec"] | {"platforms": []} == template["spec"] | {"platforms": []}


def test_every_platform_of_the_manifest_is_built() -> None:
    template: dict[str, Any] = yaml.safe_load((ROOT / "plugin.yaml").read_text())
    uris = [entry["uri"].rpartition("/")[2] for entry in template["spec"]["platforms"]]
    assert uris == [manifest.name(each.name, each.extension) for each in PLATFORMS]


def test_the_sbom_lists_what_is_inside(built: tuple[Path, Path]) -> None:
    found = json.loads((built[0] / f"kubectl-cgaudit-v{__version__}.cdx.json").read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    assert found["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert [each["purl"] for each in found["components"]] == [
        f"pkg:pypi/{pin.name}@{pin.version}" for pin in lock.read()
    ]


def test_a_zip_for_windows_is_dated_too() -> None:
    packed = pack({"b": b"2", "a": b"1"}, "zip", EPOCH)
    assert packed == pack({"a": b"1", "b": b"2"}, "zip", EPOCH)
    with ZipFile(io.BytesIO(packed)) as archive:
        assert [(each.filename, each.date_time) for each in archive.infolist()] == [
            ("a", (2023, 11, 14, 22, 13, 20)),
            ("b", (2023, 11, 14, 22, 13, 20)),
        ]


def test_the_launcher_for_windows_is_the_same_program() -> None:
    module = windows.main_module()
    assert module.startswith("import os\nimport sys\n")
    assert (ROOT / "packaging" / "kubectl-cgaudit").read_text().endswith("'''\n" + module)
    compile(module, "__main__.py", "exec")


def test_every_place_names_the_same_pythons() -> None:
    """One that is tested and not in the archives, or the other way round, would be found by a user."""
    oldest, newest = PYTHONS[0], PYTHONS[-1]
    assert tuple(f"3.{minor}" for minor in range(11, 15)) == PYTHONS
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())
    classifier = "Programming Language :: Python :: "
    named = [each.removeprefix(classifier) for each in package["project"]["classifiers"] if each.startswith(classifier)]
    assert named == ["3", *PYTHONS]
    assert package["project"]["requires-python"] == f">={oldest}"
    assert package["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert package["tool"]["mypy"]["python_version"] == oldest
    for workflow in ("ci.yml", "release.yml"):
        jobs = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text())["jobs"]
        assert jobs["test"]["strategy"]["matrix"]["python"] == list(PYTHONS)
    tried = {each["python"] for each in jobs["try"]["strategy"]["matrix"]["include"]}
    assert tried == set(PYTHONS)
    launcher = (ROOT / "packaging" / "kubectl-cgaudit").read_text()
    assert "for python in " + " ".join(["python3", *(f"python{each}" for each in reversed(PYTHONS))]) + ";" in launcher
    for path, words in (
        ("README.md", f"Both need Python {oldest} or newer"),
        ("Makefile", f"Python {oldest} or newer is needed"),
        ("plugin.yaml", f"Needs Python {oldest} to {newest} on the PATH"),
        ("packaging/kubectl-cgaudit", f"needs CPython {oldest} to {newest} on the PATH"),
    ):
        assert words in (ROOT / path).read_text(), path


def test_the_lock_holds_every_dependency_with_hashes() -> None:
    pins = {pin.name: pin for pin in lock.read()}
    wanted = {re.split(r"[\[<>=!~]", each)[0] for each in lock.wanted()}
    assert {"click", "kubernetes", "msgspec", "pyyaml"} <= wanted <= set(pins)
    assert {name for name, pin in pins.items() if not pin.pure} == {
        "markupsafe",
        "msgspec",
        "polars-runtime-32",
        "pydantic-core",
        "pyyaml",
    }
    # A wheel for each platform and Python.
    builds = sum(len(each.pythons) for each in PLATFORMS)
    one_for_all_pythons = len(PLATFORMS)
    assert {name: len(pin.hashes) for name, pin in pins.items() if len(pin.hashes) not in (1, builds)} == {
        "polars-runtime-32": one_for_all_pythons
    }


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_pin_their_actions_and_ask_for_little(workflow: Path) -> None:
    text = workflow.read_text()
    used = USES.findall(text)
    assert used
    for each in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each), each
    parsed = yaml.safe_load(text)
    assert parsed["permissions"] == {}
    for name, job in parsed["jobs"].items():
        assert job["timeout-minutes"] <= 30, name
        assert "permissions" in job, name
        written = {scope for scope, level in job["permissions"].items() if level == "write"}
        assert written == {"attest": {"id-token", "attestations"}, "github": {"contents"}, "pypi": {"id-token"}}.get(
            name, set()
        )
        # What an attacker writes into a tag or branch name never becomes part of a script.
        assert not [step for step in job["steps"] if "${{" in step.get("run", "")]
