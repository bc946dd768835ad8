"""Flags on both sides of a command's name: those that may be repeated, and those that hold one thing."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from kubectl_cgaudit.errors import UsageError


class Repeatable(click.Option):
    """`-f a nodes -f b` is `nodes -f a -f b`: kubectl's flags stand anywhere, and none is dropped."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The values behind the command's name, after those before it."""
        values, source = super().consume_value(ctx, opts)
        return (*_before(self, ctx), *values) if source is ParameterSource.COMMANDLINE else values, source


class Once(click.Option):
    """A flag that holds one thing: who gives two of them expects both, so none is dropped unseen."""

    def __init__(self, declarations: Sequence[str], *, instead: str, **attributes: Any) -> None:
        """`instead` is what to do where there are two."""
        super().__init__(declarations, **attributes)
        self._instead = instead

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Have all of them kept, as of a flag that may be repeated."""
        self.multiple = True
        super().add_to_parser(parser, ctx)
        self.multiple = False

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The only value there is. Raises UsageError where there are more."""
        values, source = super().consume_value(ctx, opts)
        if source is not ParameterSource.COMMANDLINE:
            return values, source
        every = [*_before(self, ctx), *values]
        if len(every) > 1 and not ctx.resilient_parsing:
            raise UsageError(
                f"{self.opts[0]} is given twice ({every[0]} and {every[1]}), and holds one; {self._instead}"
            )
        return every[-1], source


def _before(option: click.Option, ctx: click.Context) -> list[Any]:
    """What was given of it before the command's name."""
    name, outer = option.name or "", ctx.parent
    if outer is None or outer.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
        return []
    value = outer.params[name]
    return [*value] if option.multiple else [value]
