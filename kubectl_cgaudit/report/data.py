"""JSON and YAML: the audit as it is, for programs."""

import msgspec
import yaml

from kubectl_cgaudit.judge.audit import Audit


def render_json(audit: Audit) -> str:
    """JSON as `report/schema/audit.schema.json` describes it."""
    return msgspec.json.format(msgspec.json.encode(audit), indent=2).decode() + "\n"


def render_yaml(audit: Audit) -> str:
    """The same data as YAML."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(msgspec.to_builtins(audit), Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
