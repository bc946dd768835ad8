"""JSON and YAML: the audit as it is, for programs."""

import re

import msgspec
import yaml
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit
from kubectl_cgaudit.report.pieces import Pieces, whole

_JSON_PLACE = '\n  "workloads": []'
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
    """The same data as YAML; what there is much of in the flow style, an item a line."""
    parts: list[str] = []
    place = 0
    for field in audit.__struct_encode_fields__:
        if field == "workloads":
            place = len(parts)
            parts.append("workloads:\n" if audit.workloads else "workloads: []\n")
            continue
        value = getattr(audit, _python_name(field))
        if isinstance(value, tuple) and value:
            parts.append(f"{field}:\n" + "".join(_item(each) for each in value))
        else:
            parts.append(_dumped({field: value}))
    return Pieces("".join(parts[: place + 1]), lambda workload, _: _item(workload), "".join(parts[place + 1 :]))


def _python_name(field: str) -> str:
    names = dict(zip(Audit.__struct_encode_fields__, Audit.__struct_fields__, strict=True))
    return names[field]


def _item(value: object) -> str:
    return f"- {_flow(value)}\n"


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
