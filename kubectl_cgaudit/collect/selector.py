"""Label selectors, as `kubectl -l` takes them."""

import re
from collections.abc import Callable

from kubectl_cgaudit.errors import UsageError

Labels = dict[str, str]
Test = Callable[[Labels], bool]

_KEY = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
_VALUE = r"[A-Za-z0-9._-]*"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)", re.ASCII)
_EQUAL = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})", re.ASCII)
_EXISTS = re.compile(rf"(!?)\s*({_KEY})", re.ASCII)
_COMMA_OUTSIDE = re.compile(r",(?![^(]*\))")


def parse(text: str) -> Test:
    """A test of labels for `app=web,tier!=db,env in (a, b),!legacy`. Raises UsageError when it is malformed."""
    tests = [_requirement(part.strip()) for part in _COMMA_OUTSIDE.split(text) if part.strip()]
    return lambda labels: all(test(labels) for test in tests)


def _requirement(part: str) -> Test:
    if found := _SET.fullmatch(part):
        key, negated = found[1], found[2] == "notin"
        values = {value.strip() for value in found[3].split(",")}
        return lambda labels: (labels.get(key) in values) != negated
    if found := _EQUAL.fullmatch(part):
        key, negated, value = found[1], found[2] == "!=", found[3]
        return lambda labels: (labels.get(key) == value) != negated
    if found := _EXISTS.fullmatch(part):
        key, negated = found[2], found[1] == "!"
        return lambda labels: (key in labels) != negated
    raise UsageError(f"-l: {part!r} is not a label selector; write it as in app=web,tier!=db,env in (a,b),!legacy")
