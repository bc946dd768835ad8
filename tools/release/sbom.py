"""What the archives consist of, as a CycloneDX document, from the lock file."""

import json
from datetime import UTC, datetime

from tools.release import lock
from tools.release.manifest import version


def render(epoch: int) -> str:
    """The document; its only date is `epoch` (seconds since 1970)."""
    own = {
        "type": "application",
        "bom-ref": "kubectl-cgaudit",
        "name": "kubectl-cgaudit",
        "version": version(),
        "purl": f"pkg:pypi/kubectl-cgaudit@{version()}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{pin.name}@{pin.version}",
            "name": pin.name,
            "version": pin.version,
            "purl": f"pkg:pypi/{pin.name}@{pin.version}",
            # A compiled one has a wheel, and so a hash, for each platform and Python.
            "hashes": [{"alg": "SHA-256", "content": each} for each in pin.hashes],
        }
        for pin in lock.read()
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
        },
        "components": components,
        "dependencies": [{"ref": "kubectl-cgaudit", "dependsOn": [each["bom-ref"] for each in components]}],
    }
    return json.dumps(document, indent=2) + "\n"
