"""An exec credential plugin: prints the token that is in a file, and adds a line to FILE.runs. Needs nothing else."""

import json
import sys
from pathlib import Path


def main() -> None:
    """Print the ExecCredential."""
    kept = Path(sys.argv[1])
    with Path(f"{kept}.runs").open("a") as runs:
        runs.write("run\n")
    said = {"token": kept.read_text()}
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": said}))


if __name__ == "__main__":
    main()
