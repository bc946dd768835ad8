"""A flag that may be repeated, on both sides of a command's name."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource


class Repeatable(click.Option):
    """`-f a nodes -f b` is `nodes -f a -f b`: kubectl's flags stand anywhere, and none is dropped."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The values behind the command's name, after those before it."""
        values, source = super().consume_value(ctx, opts)
        if source is ParameterSource.COMMANDLINE and ctx.parent is not None:
            values = (*(ctx.parent.params.get(self.name or "") or ()), *values)
        return values, source
