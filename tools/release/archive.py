"""Archives whose bytes depend on their files and one date, and on nothing else."""

import gzip
import io
import tarfile
from datetime import UTC, datetime
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tools.release.tree import EXECUTABLES, Tree


def pack(tree: Tree, extension: str, epoch: int) -> bytes:
    """The files as tar.gz or zip, sorted, all dated `epoch` (seconds since 1970)."""
    return _tar(tree, epoch) if extension == "tar.gz" else _zip(tree, epoch)


def _mode(path: str) -> int:
    return 0o755 if path.rpartition("/")[2] in EXECUTABLES else 0o644


def _tar(tree: Tree, epoch: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(tree):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(tree[path]), epoch, _mode(path)
            archive.addfile(entry, io.BytesIO(tree[path]))
    return gzip.compress(buffer.getvalue(), 6, mtime=epoch)


def _zip(tree: Tree, epoch: int) -> bytes:
    date = datetime.fromtimestamp(epoch, UTC)
    moment = (date.year, date.month, date.day, date.hour, date.minute, date.second)
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=6) as archive:
        for path in sorted(tree):
            entry = ZipInfo(path, moment)
            entry.compress_type, entry.create_system, entry.external_attr = ZIP_DEFLATED, 3, _mode(path) << 16
            archive.writestr(entry, tree[path])
    return buffer.getvalue()
