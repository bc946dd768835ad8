"""Everything a person reads is plain: phrases that readers stumbled over occur nowhere, and no sentence is long."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.cli.audit import group
from kubectl_cgaudit.cli.commands import COMMANDS, load
from kubectl_cgaudit.report.rules import RULES
from tests.reference.clusters import KINDS
from tests.support import audited, random_audit, recorded, recorded_audit

ROOT = Path(__file__).parent.parent
PHRASES = (
    *("its default weight is taken", "SURE does not count", "ratio of now", "of its part", "But then", "runtime it has then"),
    *("nobody says", "only may hold", "From where on", "the least that needs", "for sure", "first of all", "whoever"),
    *("who asks", "of which", "that of", "is none", "as it is", "or may", "known how surely", "SURE assumed"),
    *("nothing worse", "another number", "no CPU beyond"),
)  # fmt: skip
STUMBLED = re.compile("|".join(rf"\b{re.escape(phrase)}\b" for phrase in PHRASES), re.IGNORECASE)
LONGEST = 30
"""Words of a sentence."""
PAGES = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "kubectl_cgaudit").rglob("*.j2")]


def stumbled(text: str) -> list[str]:
    return [text[max(0, found.start() - 40) : found.end() + 40] for found in STUMBLED.finditer(text)]


def texts(path: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in docs:
            yield each.value


def long_sentences(text: str) -> list[str]:
    # A command in backticks is one word.
    plain = re.sub(r"`[^`]*`", "COMMAND", text)
    return [each for each in re.split(r"(?<=[.:?!])\s+|\n\n", plain) if len(each.split()) > LONGEST]


def said(audit: Audit) -> Iterator[str]:
    yield audit.verdict.sentence
    for finding in audit.findings:
        yield finding.message
        yield finding.title
    for action in audit.actions:
        yield from (action.title, action.when, action.cost, action.undo, *action.alternatives)
    yield from audit.target.assumptions
    yield from audit.coverage.notes


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_has_a_phrase_that_readers_stumbled_over(path: Path) -> None:
    assert stumbled(path.read_text()) == []


def test_no_message_has_one() -> None:
    sources = (ROOT / "kubectl_cgaudit").rglob("*.py")
    assert [each for path in sources for text in texts(path) for each in stumbled(text)] == []


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_plain(name: str) -> None:
    command = group if not name else load(name)
    options = [each.help for each in command.params if isinstance(each, click.Option) and each.help and not each.hidden]
    paragraphs = (command.help or "").partition("\f")[0].split("\n\n")
    assert stumbled(command.get_help(click.Context(command))) == []
    examples = [each for each in paragraphs if not each.lstrip().startswith("\b")]
    assert [each for text in (*options, *examples) for each in long_sentences(text)] == []


@pytest.mark.parametrize("audit", [recorded_audit(), audited(recorded())], ids=["known", "blind"])
def test_what_is_said_of_the_recorded_cluster_is_plain(audit: Audit) -> None:
    every = list(said(audit))
    assert len(every) > 60
    assert [each for text in every for each in long_sentences(text)] == []
    assert [each for text in every for each in stumbled(text)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_random_clusters_is_plain(kind: str) -> None:
    every = {text for seed in range(10) for text in said(random_audit(kind, seed))}
    assert [each for text in sorted(every) for each in long_sentences(text)] == []
    assert [each for text in sorted(every) for each in stumbled(text)] == []


def test_what_the_rules_say_of_themselves_is_plain() -> None:
    assert [each for rule in RULES for each in long_sentences(rule.why)] == []
