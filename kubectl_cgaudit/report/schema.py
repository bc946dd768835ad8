"""The JSON Schema of the audit, made from its types, so that it cannot say otherwise."""

import json

import msgspec

from kubectl_cgaudit.judge.audit import SCHEMA_VERSION, Audit


def text() -> str:
    """The schema as it lies beside this module in `audit.schema.json`."""
    schema = msgspec.json.schema(Audit)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kubectl cgaudit -o json",
        "description": f"Version {SCHEMA_VERSION}. Within a major version fields are only added.",
    }
    return json.dumps({**head, **schema}, indent=1) + "\n"
