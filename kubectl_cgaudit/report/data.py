"""JSON and YAML: the audit as it is, for programs."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, CaseChange, ContainerAudit, Moment, PodAudit, WorkloadAudit, in_ranks
from kubectl_cgaudit.judge.figures import Figures, Fixed, Form
from kubectl_cgaudit.judge.findings import Findings
from kubectl_cgaudit.plain import as_yaml, indented
from kubectl_cgaudit.report.blanks import BLANK, Kept, filled, with_blanks
from kubectl_cgaudit.report.escape import json_text, yaml_text
from kubectl_cgaudit.report.pieces import Part, Pieces

# A longer key has to be marked as one: https://yaml.org/spec/1.2.2/#742-flow-mappings
_LONGEST_KEY = 1024
# Of numbers with an exponent YAML 1.1 takes only those that have a point, and a sign before the exponent, for numbers.
# A search that begins with a letter is the fastest. Few texts hold one, or a string that looks so; `_NUMBER` tells them.
_EXPONENT = re.compile(r"e(?<=\de)-?\d+[],}]")
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d+)(\.\d+)?e(-?)(\d+)')
_LONG_KEY = re.compile(r'"(?<=[{,]")(?:[^"\\]|\\.){500,}"(?=:)')


def json_pieces(audit: Audit) -> Pieces:
    """JSON as `report/audit.schema.json` describes it; of what there is much of, an item a line."""
    before, after = _fields(audit)
    between = ["[" if audit.workloads else "[]"]
    text = Kept(_pod)
    return Pieces(
        head=chain(["{"], _json_fields(audit, before, first=True), [',\n  "workloads": ', *between]),
        each=lambda workload, first: _workload(
            workload, text, "\n    " if first else ",\n    ", "\n      ", "", json_text
        ),
        tail=chain(["\n  ]"] if audit.workloads else [], _json_fields(audit, after, first=False), ["\n}\n"]),
    )


def _workload(
    workload: WorkloadAudit,
    text: Kept[list[str]],
    begin: str,
    indent: str,
    end: str,
    write: Callable[[str], str],
) -> Part:
    """A workload between `begin` and `end`, each pod after `indent`; `write` makes of JSON what the format takes."""
    head, tail = with_blanks(replace(workload, pods=BLANK))
    return Part(
        before=f"{begin}{write(head)}[",
        pod=lambda pod, first: f"{'' if first else ','}{indent}{write(_filled(pod, text))}",
        after=f"]{write(tail)}{end}",
    )


class _Own(Struct, rename="camel", gc=False):
    """The first fields of a PodAudit: those that are not of its form."""

    name: str
    node: str
    qos: str
    handler: str
    confidence: str
    effects: tuple[str, ...]


def _pod(form: Form) -> list[str]:
    """The text of a pod of this form after what is its own, with blanks for its numbers."""

    def changes(whens: Sequence[str], row: Sequence[Fixed], stops: Sequence[bool]) -> list[CaseChange]:
        moments = [
            Moment(
                each.version, each.value, each.nominal_ratio, BLANK, BLANK, each.in_pod, each.quota_us, each.measured
            )
            for each in row
        ]
        return list(map(CaseChange, whens, moments[0::2], moments[1::2], stops, count(1), form.leading))

    pod, *containers = map(changes, form.whens, form.fixed, form.stops)
    return with_blanks(
        PodAudit(
            BLANK,
            BLANK,
            BLANK,
            BLANK,
            BLANK,
            BLANK,
            *in_ranks(pod),
            tuple(
                ContainerAudit(each.name, each.role, each.request_milli, each.limit_milli, *in_ranks(cases))
                for each, cases in zip(form.containers, containers, strict=True)
            ),
        )
    )[len(_Own.__struct_fields__) :]


def _filled(pod: Figures, text: Kept[list[str]]) -> str:
    """The text of a pod, made by whichever format comes first."""
    if pod.text is None:
        own = _Own(pod.name, pod.node, pod.qos, pod.handler, pod.confidence, pod.effects)
        pod.text = filled(_encoded(own)[:-1], text.of(pod.form), pod.texts)
    return pod.text


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _fields(audit: Audit) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The names of the fields in the output and in Python, before and after the workloads."""
    names = list(zip(audit.__struct_encode_fields__, audit.__struct_fields__, strict=True))
    place = [name for name, _ in names].index("workloads")
    return names[:place], names[place + 1 :]


def _json_fields(audit: Audit, names: list[tuple[str, str]], *, first: bool) -> Iterator[str]:
    for name, field in names:
        value = getattr(audit, field)
        yield f'{"" if first else ","}\n  "{name}": '
        first = False
        if isinstance(value, tuple | Findings):
            for index, each in enumerate(value):
                yield ("," if index else "[") + _json_item(each)
            yield "\n  ]" if value else "[]"
        else:
            yield _indented(value, 2)


def _json_item(value: object) -> str:
    return f"\n    {json_text(_encoded(value))}"


def _indented(value: object, depth: int) -> str:
    # No text in JSON holds a raw line break.
    return indented(value).replace("\n", "\n" + " " * depth)


def yaml_pieces(audit: Audit) -> Pieces:
    """The same data as YAML; what there is much of in the flow style, an item a line."""
    before, after = _fields(audit)
    text = Kept(_pod)
    return Pieces(
        head=chain(_yaml_fields(audit, before), ["workloads:\n" if audit.workloads else "workloads: []\n"]),
        each=lambda workload, _: _workload(workload, text, "- ", "", "\n", _as_yaml),
        tail=_yaml_fields(audit, after),
    )


def _yaml_fields(audit: Audit, names: list[tuple[str, str]]) -> Iterator[str]:
    for name, field in names:
        value = getattr(audit, field)
        if isinstance(value, tuple | Findings):
            yield f"{name}:\n" if value else f"{name}: []\n"
            yield from map(_yaml_item, value)
        else:
            yield as_yaml({name: value})


def _yaml_item(value: object) -> str:
    text = _as_yaml(_encoded(value))
    return f"- {_LONG_KEY.sub(_marked, text) if len(text) > _LONGEST_KEY else text}\n"


def _marked(key: re.Match[str]) -> str:
    return f"? {key[0]}"


def _as_yaml(text: str) -> str:
    """The same data for whoever reads YAML 1.1 or 1.2. The text is JSON, cut between values if at all.

    JSON is YAML, but for characters that JSON may hold raw and YAML only escaped, which are among those that act.
    """
    return yaml_text(_NUMBER.sub(_pointed, text) if _EXPONENT.search(text) else text)


def _pointed(found: re.Match[str]) -> str:
    digits, fraction, sign, exponent = found.groups()
    return f"{digits}{fraction or '.0'}e{sign or '+'}{exponent}" if digits else found[0]
