"""A CronJob's schedule, as the controller reads it: https://pkg.go.dev/github.com/robfig/cron/v3#hdr-CRON_Expression_Format."""

import re

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: tuple[tuple[int, int, list[str]], ...] = (
    (0, 59, []),
    (0, 23, []),
    (1, 31, []),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
"""Minute, hour, day of the month, month, day of the week: least, greatest, and the names from the least on."""
_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_ITEM = re.compile(r"(?:[*?]|(\w{1,3})(?:-(\w{1,3}))?)(?:/([1-9]\d{0,2}))?", re.ASCII)


def is_schedule(text: str) -> bool:
    """Whether the controller takes it: five fields, or a macro."""
    fields = re.split(" +", text)
    return text in _MACROS or (len(fields) == len(_FIELDS) and all(map(_fits, fields, _FIELDS)))


def _fits(field: str, bounds: tuple[int, int, list[str]]) -> bool:
    return all(_item_fits(item, *bounds) for item in field.split(","))


def _item_fits(item: str, least: int, greatest: int, names: list[str]) -> bool:
    found = _ITEM.fullmatch(item)
    if not found:
        return False
    ends = [_value(end, least, names) for end in found.groups()[:2] if end is not None]
    known = sorted(end for end in ends if end is not None and least <= end <= greatest)
    # A range that ends before it begins is refused too.
    return known == ends


def _value(text: str, least: int, names: list[str]) -> int | None:
    if text.isdigit():
        return int(text)
    return names.index(text.lower()) + least if text.lower() in names else None
