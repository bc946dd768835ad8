"""`python -m tools.release`: archives, packages, krew manifest, SBOM and checksums into dist/.

The same commit gives the same bytes.
"""

import argparse
import os
import subprocess
from pathlib import Path

from tools.release import manifest, packages, sbom
from tools.release.archive import pack
from tools.release.fetch import CACHE, fetch
from tools.release.lock import ROOT
from tools.release.platforms import PLATFORMS
from tools.release.tree import build


def main() -> None:
    """Build everything, or of the archives those of the platforms named."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--platform", action="append", choices=[each.name for each in PLATFORMS])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--wheels", type=Path, default=CACHE, help="where downloaded wheels are kept")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    epoch = date()
    archives = {}
    for platform in PLATFORMS:
        if chosen.platform and platform.name not in chosen.platform:
            continue
        name = manifest.name(platform.name, platform.extension)
        archives[name] = pack(build(platform, fetch(platform, chosen.wheels)), platform.extension, epoch)
        (chosen.out / name).write_bytes(archives[name])
        print(f"{len(archives[name]) / 1e6:6.1f} MB  {name}", flush=True)  # noqa: T201
    for name, data in packages.build(epoch).items():
        (chosen.out / name).write_bytes(data)
        print(f"{len(data) / 1e6:6.1f} MB  {name}", flush=True)  # noqa: T201
    (chosen.out / "cgaudit.yaml").write_text(manifest.fill(manifest.TEMPLATE.read_text(), archives))
    (chosen.out / f"kubectl-cgaudit-v{manifest.version()}.cdx.json").write_text(sbom.render(epoch))
    (chosen.out / "SHA256SUMS").write_text(manifest.checksums(chosen.out))


def date() -> int:
    """SOURCE_DATE_EPOCH, or when the last commit was made."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if said:
        return int(said)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    if not (ROOT / ".git").exists():
        raise SystemExit("this is no clone of the repository; say the date of the release: SOURCE_DATE_EPOCH=SECONDS")
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - git, with our own words
    return int(done.stdout)


main()
