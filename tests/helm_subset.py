"""The part of Helm's templates that the chart uses: if, with, range, include, and six functions. Anything else is refused.

Where Helm is there too, test_chart.py holds this to its output, document by document.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?) *(.*?) *(-?)\}\}")
_DEFINE = re.compile(r'\{\{- define "([^"]+)" -\}\}(.*?)\{\{- end \}\}\n?', re.DOTALL)
_TOKEN = re.compile(r'"[^"]*"|[()|]|[^\s()|]+')
Node = str | tuple[str, str, list[Any]]


def render(chart: Path, namespace: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of the chart's templates, for values merged into its values.yaml."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    unknown = set(values) - set(defaults)
    if unknown:
        raise KeyError(f"no such values: {sorted(unknown)}")
    scope = {
        "Chart": {"AppVersion": about["appVersion"]},
        "Release": {"Namespace": namespace},
        "Values": _merged(defaults, values),
    }
    texts = {path.name: path.read_text() for path in sorted((chart / "templates").iterdir())}
    defined = {name: body for text in texts.values() for name, body in _DEFINE.findall(text)}
    template = _Template(defined)
    documents = [template.run(_DEFINE.sub("", text), scope) for name, text in texts.items() if name.endswith(".yaml")]
    return [found for found in map(yaml.safe_load, documents) if found]


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Maps key by key, everything else replaced."""
    both = {key: _merged(under[key], over[key]) for key in under.keys() & over.keys() if isinstance(under[key], dict)}
    return under | over | both


class _Template:
    def __init__(self, defined: dict[str, str]) -> None:
        self._defined = defined

    def run(self, text: str, dot: Any) -> str:
        """The text with every action done."""
        nodes, rest = _block(_split(text))
        assert not rest, "an end without a beginning"
        return self._write(nodes, dot, dot)

    def _write(self, nodes: list[Node], dot: Any, top: Any) -> str:
        out = ""
        for node in nodes:
            if isinstance(node, str):
                out += node
                continue
            kind, words, inner = node
            value = self._value(_TOKEN.findall(words), dot, top)
            if kind == "print":
                out += value if isinstance(value, str) else str(value)
            elif kind == "range":
                out += "".join(self._write(inner, item, top) for item in value)
            elif value:
                out += self._write(inner, value if kind == "with" else dot, top)
        return out

    def _value(self, tokens: list[str], dot: Any, top: Any) -> Any:
        """A pipeline: what is left of | is the last argument of what is right of it."""
        result: list[Any] = []
        while tokens:
            args: list[Any] = []
            while tokens and tokens[0] not in ("|", ")"):
                token = tokens.pop(0)
                if token == "(":
                    args.append(self._value(tokens, dot, top))
                    assert tokens.pop(0) == ")"
                else:
                    args.append(self._atom(token, dot, top))
            args += result
            result = [args[0](*args[1:]) if callable(args[0]) else args[0]]
            if not tokens or tokens[0] == ")":
                break
            tokens.pop(0)
        return result[0]

    def _atom(self, token: str, dot: Any, top: Any) -> Any:
        if token.startswith('"'):
            return token[1:-1]
        if token.isdigit():
            return int(token)
        if token == ".":
            return dot
        if token.startswith("."):
            found = dot
            for name in token[1:].split("."):
                found = found[name]
            return found
        functions: dict[str, Callable[..., Any]] = {
            "eq": lambda left, right: left == right,
            "has": lambda item, items: item in items,
            "default": lambda otherwise, value: value or otherwise,
            "printf": lambda pattern, *words: pattern % words,
            "quote": json.dumps,
            "toJson": json.dumps,
            "nindent": lambda count, text: "\n" + "\n".join(" " * count + line for line in text.split("\n")),
            "include": lambda name, scope: self.run(self._defined[name], scope).strip(),
        }
        return functions[token]


def _split(text: str) -> list[str | tuple[str]]:
    """Text and actions in turn; a - has taken the white space on its side."""
    parts: list[str | tuple[str]] = []
    place, trim = 0, False
    for match in _ACTION.finditer(text):
        before = text[place : match.start()]
        before = before.lstrip() if trim else before
        parts += [before.rstrip() if match[1] else before, (match[2],)]
        place, trim = match.end(), bool(match[3])
    return [*parts, text[place:].lstrip() if trim else text[place:]]


def _block(parts: list[str | tuple[str]]) -> tuple[list[Node], list[str | tuple[str]]]:
    """The nodes up to the end of a block, and what is left after it."""
    nodes: list[Node] = []
    while parts:
        head, *parts = parts
        if isinstance(head, str):
            nodes.append(head)
            continue
        word, _, rest = head[0].partition(" ")
        if word == "end":
            return nodes, parts
        if word in ("if", "with", "range"):
            inner, parts = _block(parts)
            nodes.append((word, rest, inner))
        else:
            nodes.append(("print", head[0], []))
    return nodes, parts
