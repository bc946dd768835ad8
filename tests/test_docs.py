"""The docs agree with the code: titles, commands, arithmetic and quoted output."""

import re
import shlex
from pathlib import Path

import click
import msgspec
import pytest

from kubectl_cgaudit.audit import thresholds
from kubectl_cgaudit.cgroups.quota import milli_to_quota, round_up
from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, milli_to_shares, quadratic
from kubectl_cgaudit.cli import output
from kubectl_cgaudit.cli.audit import group
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.report.formats import FORMATS
from kubectl_cgaudit.report.rules import RULES
from kubectl_cgaudit.text import number, percent
from tests.support import GOLDEN, RECORDED_FLAGS, STATES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FINDINGS = sorted((DOCS / "findings").glob("*.md"))
SECTIONS = ["What", "Why it matters", "How it is decided", "What to do", "Worked example", "Limits"]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = {
    "linear": linear,
    "quadratic": quadratic,
    "linear_inverse": linear_inverse,
    "shares": milli_to_shares,
    "quota": milli_to_quota,
    "round_up": round_up,
}


def of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(path.read_text()) if not languages or language in languages]


def every_block(*languages: str) -> list[object]:
    return [
        pytest.param(body, id=f"{of(path)}-{number}")
        for path in PAGES
        for number, body in enumerate(blocks(path, *languages), 1)
    ]


def commands(text: str) -> list[list[str]]:
    """The arguments of every `kubectl cgaudit` in shell text, pipes and comments cut off."""
    found = []
    for line in text.splitlines():
        start = re.search(r"(?:^|[|]|[$]|&&|;)\s*kubectl cgaudit\b", line)
        if start:
            words = shlex.split(line[start.end() :], comments=True)
            ends = [index for index, word in enumerate(words) if word in ("|", ">", "&&", ";", "2>")]
            found.append(words[: ends[0]] if ends else words)
    return found


COMMANDS = [arguments for path in PAGES for body in blocks(path, "sh", "cgaudit") for arguments in commands(body)]


def parse(arguments: list[str]) -> None:
    """Parse a command line without running it. Raises click.UsageError or the tool's own UsageError."""
    context = group.make_context("kubectl cgaudit", list(arguments))
    # click keeps the command's name apart, under a name that depends on its version.
    attributes = vars(context)
    rest = [*attributes.get("_protected_args", attributes.get("protected_args", [])), *context.args]
    formats: tuple[str, ...] = FORMATS
    if rest:
        _, command, rest = group.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(command.name, rest, parent=context)
        formats = ("text", "json")
    output.parse(context.params.get("outputs", ()), formats)
    thresholds.parse(context.params.get("thresholds", ()))
    to = context.params.get("to", "")
    if to and not to.endswith(".yaml"):
        scenario.parse(to)


def on_recorded(arguments: list[str]) -> list[str]:
    """The arguments on the recorded cluster, unless they name files of their own."""
    places = {"states.yaml": str(STATES), "--kubelet=files:answers": f"--kubelet=files:{GOLDEN}"}
    words = [places.get(word, word) for word in arguments]
    files = RECORDED_FLAGS[: RECORDED_FLAGS.index("--states")]
    return words if "-f" in words or "convert" in words else [*words, *files]


def plain(text: str) -> str:
    """The words of a text, without line breaks, columns and the lines of a tree."""
    return " ".join(re.sub("[│├└─█░]", " ", text).split())


@pytest.mark.parametrize(
    "words", [[], ["tree", "worker-a"], ["explain", "shop/checkout-d5491e7e7-37202"], ["nodes", "--evidence"]]
)
def test_what_the_readme_gives_without_a_cluster_runs(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (demo,) = re.findall(
        r"^alias demo='kubectl-cgaudit (.*?)'$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert run([*shlex.split(demo.replace("\\\n", "")), *words]) == 0


def test_every_rule_has_one_page() -> None:
    assert len({rule.id for rule in RULES}) == 15
    assert [path.stem for path in FINDINGS] == sorted({rule.id for rule in RULES})


@pytest.mark.parametrize("path", FINDINGS, ids=of)
def test_a_page_has_the_title_of_the_catalogue_and_all_sections(path: Path) -> None:
    (title,) = (rule.name for rule in RULES if rule.id == path.stem)
    text = FENCE.sub("", path.read_text())
    assert re.findall(r"^# (.*)$", text, re.MULTILINE) == [f"{path.stem}: {title}"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("path", FINDINGS, ids=of)
def test_a_page_is_short_and_shows_its_arithmetic(path: Path) -> None:
    assert 40 <= len(path.read_text().splitlines()) <= 90
    assert path.read_text().index("```cgaudit") > path.read_text().index("## Worked example")


def test_the_index_names_every_page() -> None:
    text = (DOCS / "README.md").read_text()
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", text)}
    assert {path.resolve() for path in PAGES} - {(DOCS / "README.md").resolve()} <= linked
    for rule in RULES:
        assert rule.name in text


LINKS = [
    (path, target)
    for path in PAGES
    for target in re.findall(r"\]\((?![a-z]+:)([^)]+)\)", FENCE.sub("", path.read_text()))
]


@pytest.mark.parametrize(("path", "target"), LINKS, ids=str)
def test_a_relative_link_resolves(path: Path, target: str) -> None:
    name, _, anchor = target.partition("#")
    found = path.parent / name if name else path
    assert found.exists()
    headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert not anchor or anchor in slugs


def test_there_is_something_to_check() -> None:
    """The checks of a page loop over what it has: together the pages have some of everything."""
    texts = [path.read_text() for path in PAGES]
    said = {
        name for text in texts for name in re.findall(r"threshold `([a-z-]+)`, by default ", " ".join(text.split()))
    }
    assert said == {name.replace("_", "-") for name in thresholds.Thresholds.__struct_fields__}
    assert len(LINKS) > 60
    assert [len(every_block(language)) > 10 for language in ("sh", "cgaudit", "arithmetic")] == [True] * 3
    assert len(COMMANDS) > 60


@pytest.mark.parametrize("path", PAGES, ids=of)
def test_thresholds_are_the_defaults_of_the_code(path: Path) -> None:
    known = {name.replace("_", "-"): value for name, value in msgspec.structs.asdict(thresholds.Thresholds()).items()}
    said = re.findall(r"threshold `([a-z-]+)`, by default ([\d.]+)(%?)", " ".join(path.read_text().split()))
    assert [(name, known[name]) for name, _, _ in said] == [
        (name, float(value) / (100 if unit else 1)) for name, value, unit in said
    ]


def test_command_lines_are_found_and_wrong_ones_refused() -> None:
    assert commands("kubectl get pods -o json | kubectl cgaudit -f - > x\n# kubectl cgaudit no\n") == [["-f", "-"]]
    for wrong in (["--no-such-flag"], ["tree", "--threshold", "outweighed=1"], ["-o", "pdf"], ["--to", "v3"]):
        with pytest.raises((click.UsageError, UsageError)):
            parse(wrong)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_line_parses(arguments: list[str]) -> None:
    parse(arguments)


@pytest.mark.parametrize("body", every_block("cgaudit"))
def test_quoted_output_is_what_the_tool_prints(
    body: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    first, *quoted = body.splitlines()
    ((arguments,), status) = commands(first), re.search(r"# exits with (\d)$", first)
    assert run(on_recorded(arguments)) == (int(status[1]) if status else 0)
    # Where lines are broken and how wide columns are is the renderer's; the words and their order are the docs'.
    printed, place = plain(capsys.readouterr().out), 0
    for line in quoted:
        words = plain(line)
        if words != "...":
            assert words in printed[place:], f"not printed, or not in this order: {line}"
            place = printed.index(words, place) + len(words)
    assert [line for line in quoted if line.strip() != "..."], "a command without a line of its output"


@pytest.mark.parametrize("body", every_block("arithmetic"))
def test_arithmetic_is_right(body: str) -> None:
    for line in body.splitlines():
        sum_, _, said = line.partition("  #")[0].rpartition(" = ")
        value = eval(sum_, {"__builtins__": {}}, NAMES)
        shown = (
            percent(value) if said.strip().endswith("%") else str(value) if isinstance(value, int) else number(value)
        )
        assert shown == said.strip(), line


def test_every_fence_is_of_a_kind_that_is_checked_or_is_no_claim() -> None:
    languages = {language for path in PAGES for language, _ in FENCE.findall(path.read_text())}
    assert languages <= {"sh", "cgaudit", "arithmetic", "yaml", "text"}
