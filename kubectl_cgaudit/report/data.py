"""JSON and YAML: the audit as it is, for programs."""

import re

import msgspec
import yaml
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit
from kubectl_cgaudit.report.pieces import Pieces, whole

_JSON_PLACE = '\n  "workloads": []'
_YAML_PLACE = "\nworkloads: []\n"
_WIDTH = 120
# What YAML does not take raw, also between quotes: https://yaml.org/spec/1.2.2/#51-character-set
_NOT_PRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x85\u2028\u2029\ufeff]"
)


def json_pieces(audit: Audit) -> Pieces:
    """JSON as `report/audit.schema.json` describes it."""
    head, tail = _around(_formatted(replace(audit, workloads=())), _JSON_PLACE)
    if not audit.workloads:
        return Pieces(head + _JSON_PLACE, lambda *_: "", tail + "\n")
    return Pieces(head + '\n  "workloads": [', _json_workload, "\n  ]" + tail + "\n")


def _json_workload(workload: WorkloadAudit, first: bool) -> str:
    text = _formatted(workload).replace("\n", "\n    ")
    return f"{'' if first else ','}\n    {text}"


def _formatted(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _around(text: str, place: str) -> tuple[str, str]:
    # No text in the audit holds a raw line break, so nothing else in it looks like this.
    head, _, tail = text.partition(place)
    return head, tail


def yaml_pieces(audit: Audit) -> Pieces:
    """The same data as YAML; each pod in the flow style, on a line, as a large cluster has many."""
    head, tail = _around("\n" + _dumped(replace(audit, workloads=())), _YAML_PLACE)
    if not audit.workloads:
        return Pieces(head.removeprefix("\n") + _YAML_PLACE, lambda *_: "", tail)
    return Pieces(head.removeprefix("\n") + "\nworkloads:\n", _yaml_workload, tail)


def _yaml_workload(workload: WorkloadAudit, _first: bool) -> str:
    head, tail = _around("\n" + _dumped(replace(workload, pods=())), "\npods: []\n")
    pods = "".join(f"\n- {_flow(pod)}" for pod in workload.pods)
    text = f"{head}\npods:{pods}\n{tail}" if workload.pods else f"{head}\npods: []\n{tail}"
    lines = text.strip("\n").split("\n")
    return "".join(f"{'- ' if index == 0 else '  '}{line}\n" for index, line in enumerate(lines))


def _flow(value: object) -> str:
    # JSON is YAML, but for characters that JSON may hold raw and YAML only escaped.
    return _NOT_PRINTABLE.sub(lambda found: _escaped(found[0]), msgspec.json.encode(value).decode())


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _dumped(value: object) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(msgspec.to_builtins(value), Dumper=dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def render_json(audit: Audit) -> str:
    """All of the JSON."""
    return whole(json_pieces(audit), audit)


def render_yaml(audit: Audit) -> str:
    """All of the YAML."""
    return whole(yaml_pieces(audit), audit)
