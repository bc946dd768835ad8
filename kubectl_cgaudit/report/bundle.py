"""`-o bundle=FILE.zip`, for a change ticket: the reports for people, the snapshot they were made from, and checksums."""

import io
import zipfile
from hashlib import sha256

from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.report import formats
from kubectl_cgaudit.report.screen import PLAIN

_EPOCH = (1980, 1, 1, 0, 0, 0)


def packed(saved: Saved, snapshot: bytes | None) -> bytes:
    """Return the archive: `audit.html`, `audit.md`, `snapshot.json.gz` if there is one, `SHA256SUMS`.

    The same audit is the same bytes.
    """
    parts = {
        "audit.html": formats.text("html", saved, PLAIN).encode(errors="backslashreplace"),
        "audit.md": formats.text("markdown", saved, PLAIN).encode(errors="backslashreplace"),
        **({} if snapshot is None else {"snapshot.json.gz": snapshot}),
    }
    sums = "".join(f"{sha256(data).hexdigest()}  {name}\n" for name, data in parts.items())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**parts, "SHA256SUMS": sums.encode()}.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o600 << 16
            archive.writestr(info, data, zipfile.ZIP_STORED if name.endswith(".gz") else zipfile.ZIP_DEFLATED)
    return file.getvalue()
