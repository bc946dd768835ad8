"""The platforms archives are built for, as krew and as pip call them."""

from dataclasses import dataclass

PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True)
class Platform:
    """One archive. `tags` are pip's names for the wheels that run there, best first."""

    os: str
    arch: str
    tags: tuple[str, ...]
    pythons: tuple[str, ...] = PYTHONS

    @property
    def name(self) -> str:
        """Such as linux-amd64."""
        return f"{self.os}-{self.arch}"

    @property
    def extension(self) -> str:
        """What krew unpacks on this system."""
        return "zip" if self.os == "windows" else "tar.gz"


def _linux(arch: str, machine: str) -> Platform:
    # Not for musl (Alpine): its wheels would double the archive, and krew cannot tell the two apart. pip can.
    tags = ("manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1", "manylinux_2_28")
    return Platform("linux", arch, tuple(f"{tag}_{machine}" for tag in tags))


PLATFORMS = (
    _linux("amd64", "x86_64"),
    _linux("arm64", "aarch64"),
    Platform("darwin", "amd64", ("macosx_12_0_x86_64",)),
    Platform("darwin", "arm64", ("macosx_12_0_arm64",)),
    Platform("windows", "amd64", ("win_amd64",)),
    # For Windows on ARM there are no wheels of every dependency before Python 3.12.
    Platform("windows", "arm64", ("win_arm64",), PYTHONS[1:]),
)
