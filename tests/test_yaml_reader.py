"""The reader of all YAML: what it refuses, what scalars mean, and that both parsers are treated alike."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from kubectl_cgaudit import yaml_reader
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.advice import SAVE
from kubectl_cgaudit.collect.kubeconfig import NEXT
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.yaml_reader import KUBECONFIG, OBJECTS, SETTINGS, Dialect, YamlError, document, documents
from tests.support import container, node, pod, read_text
from tools.fuzz import seeds
from tools.fuzz.mutate import damage, structure

DIALECTS = {"objects": OBJECTS, "kubeconfig": KUBECONFIG, "settings": SETTINGS}
MERGES = "\n".join(
    ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{!!merge <<: [{', '.join([f'*a{n - 1}'] * 8)}]}}" for n in range(1, 9))]
)
LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))]
)
_CSAFE = yaml.CSafeLoader
SIXTY = "1" + ":1" * 300_000


@pytest.fixture(params=["libyaml", "PyYAML"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "PyYAML":
        monkeypatch.delattr(yaml, "CSafeLoader")
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """Nothing here may take long: the bombs took up to a minute each."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 5


def problem(text: bytes | str, dialect: Dialect) -> tuple[str, int, bool]:
    with pytest.raises(YamlError) as caught:
        documents(text, dialect)
    return caught.value.problem, caught.value.line, caught.value.refused


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-12", -12),
        ("+1_000", 1000),
        ("0", 0),
        ("017", 15),
        ("-0x1f", -31),
        ("0b101", 5),
        ("1.5", 1.5),
        ("-1_0.25e+3", -10250.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("9" * 100, int("9" * 100)),
        ("true", True),
        ("Off", False),
        ("YES", True),
        ("~", None),
        ("NULL", None),
        ("", None),
        # Text to YAML 1.2 and to kubectl.
        ("1:30", "1:30"),
        ("190:20:30.15", "190:20:30.15"),
        (SIXTY, SIXTY),
        ("2001-12-14", "2001-12-14"),
        ("2001-12-14 21:59:43.10 -5", "2001-12-14 21:59:43.10 -5"),
        # Text to PyYAML, which may have written it.
        ("1e3", "1e3"),
        ("0o17", "0o17"),
        ("y", "y"),
        ("+.5", "+.5"),
        ("0x_", "0x_"),
        ("0b_", "0b_"),
        ("1__", 1),
        ("08", "08"),
        ("=", "="),
        ("<<", "<<"),
        ("9" * 101, "9" * 101),
        ("0x" + "f" * 600_000, "0x" + "f" * 600_000),
        ("1." + "0" * 600_000, "1." + "0" * 600_000),
        ("\u0661", "\u0661"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_what_plain_scalars_mean(text: str, value: Any) -> None:
    for dialect in (OBJECTS, KUBECONFIG):
        assert document(f"- {text}\n- '{text}'\n- !!str {text}", dialect) == [value, text, text]
        assert type(document(f"- {text}", dialect)[0]) is type(value)
    assert document(f"- {text}\n- '{text}'", SETTINGS) == [text, text]


def test_no_number_is_no_number() -> None:
    assert math.isnan(document(".NaN", OBJECTS))


def test_keys_are_text() -> None:
    text = "1: a\n1.10: b\ntrue: c\n~: d\n? ''\n: e\n2001-01-01: f\n"
    for dialect in DIALECTS.values():
        assert list(document(text, dialect)) == ["1", "1.10", "true", "~", "", "2001-01-01"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!int '3'", 3),
        ("!!float 3", 3),
        ("!!bool no", False),
        ("!!null ''", None),
        ("!!str 3", "3"),
        ("! 3", 3),
        ("! '3'", "3"),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
    ],
)
def test_the_core_tags(text: str, value: Any) -> None:
    for dialect in (OBJECTS, KUBECONFIG):
        assert document(text, dialect) == value


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("!!merge <<: {a: 1}", "!!merge"),
        ("a: !!binary aGk=", "!!binary"),
        ("a: !!timestamp 2001-01-01", "!!timestamp"),
        ("a: !!set {a}", "!!set"),
        ("a: !!omap [a: 1]", "!!omap"),
        ("a: !!str [x]", "!!str"),
        ("a: !!python/object/apply:os.system [id]", "!!python/object/apply:os.system"),
        ("a: !local x", "!local"),
        ("%TAG ! tag:yaml.org,2002:python/\n---\na: !object/apply:os.getcwd []", "!!python/object/apply:os.getcwd"),
        ("a: !<tag:example.com,2000:" + "x" * 99 + "> x", "tag:example.com,2000:" + "x" * 39),
    ],
)
def test_other_tags_are_refused(text: str, tag: str) -> None:
    line = text.count("\n") + 1
    for dialect in DIALECTS.values():
        assert problem(text, dialect) == (f"the tag {tag} is not one of YAML's core", line, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("!!int x", "'x' is no !!int"),
        ("!!int on", "'on' is no !!int"),
        ("!!bool 1", "'1' is no !!bool"),
        ("!!null 1", "'1' is no !!null"),
    ],
)
def test_a_scalar_that_is_not_of_its_tag(text: str, said: str) -> None:
    for dialect in DIALECTS.values():
        assert problem(text, dialect) == (said, 1, True)


@pytest.mark.parametrize("text", ["a: &x 1", "a: &x [1]", "&x a: 1", "a: &x {}\nb: *x"])
def test_anchors_are_refused_in_what_kubectl_prints(text: str) -> None:
    assert problem(text, OBJECTS) == ("it uses YAML anchors", 1, True)


def test_aliases_and_merges_where_they_are_legal() -> None:
    text = """
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
own: {<<: *base, b: 9}
first: {<<: [*base, *more]}
late: {b: 9, <<: *base, <<: *more}
within: {<<: {x: 1, <<: {y: 2, x: 3}}}
listed: [*base, &seven 7, *seven]
*seven : key
"quoted": {"<<": 1}
"""
    for dialect, number in ((KUBECONFIG, int), (SETTINGS, str)):
        found = document(text, dialect)
        one, two, three, four, seven, nine = map(number, (1, 2, 3, 4, 7, 9))
        assert found["own"] == {"a": one, "b": nine}
        assert found["first"] == {"a": one, "b": two, "c": four}
        assert found["late"] == {"a": one, "b": nine, "c": four}
        assert found["within"] == {"x": one, "y": two}
        assert found["listed"] == [{"a": one, "b": two}, seven, seven]
        assert (found["more"], found["7"], found["quoted"]) == ({"b": three, "c": four}, "key", {"<<": one})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: *nowhere", "the alias *nowhere has no anchor that ends before it"),
        ("a: &a [*a]", "the alias *a has no anchor that ends before it"),
        ("&a a: *b\n", "the alias *b has no anchor that ends before it"),
        ("--- &a x\n--- *a", "the alias *a has no anchor that ends before it"),
        ("a: {<<: 1}", "the key << needs a mapping, or a list of them"),
        ("a: {<<: [{}, x]}", "the key << needs a mapping, or a list of them"),
        ("? [a]\n: 1", "a key must be a single word"),
        ("? {a: 1}\n: 1", "a key must be a single word"),
        ("a: &a [1]\n? *a\n: 1", "a key must be a single word"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, said: str) -> None:
    for dialect in (KUBECONFIG, SETTINGS):
        assert problem(text, dialect)[::2] == (said, True)


def test_a_key_may_stand_twice_only_where_kubectl_reads_it() -> None:
    text = "a: {b: 1, c: 2, b: 3}"
    assert document(text, KUBECONFIG) == {"a": {"b": 3, "c": 2}}
    for dialect in (OBJECTS, SETTINGS):
        assert problem(text, dialect) == ("the key b stands twice", 1, True)


def test_an_anchor_counts_from_its_last_definition() -> None:
    assert document("[&a 1, *a, &a 2, *a]", KUBECONFIG) == [1, 1, 2, 2]


def test_the_depth_of_nesting() -> None:
    for opening, end in (("[", "]"), ("{a: ", "}")):
        for dialect in DIALECTS.values():
            assert document(opening * 100 + end * 100, dialect)
            assert problem(opening * 101, dialect) == ("it is nested more than 100 levels deep", 1, True)


def test_what_aliases_stand_for_is_counted_before_it_is_built() -> None:
    ten_values, alias = "- &a [x, x, x, x, x, x, x, x, x]\n", "- *a\n"
    assert len(document(ten_values + alias * 10_000, KUBECONFIG)) == 10_001
    said = "its aliases stand for more than 100,000 values"
    assert problem(ten_values + alias * 10_001, KUBECONFIG) == (said, 10_002, True)
    assert problem(LAUGHS, KUBECONFIG) == (said, 6, True)
    # What is long is as good as many: a credential plugin is told of its cluster in full.
    long = f"- &a {'x' * 1_000_000}\n"
    assert len(document(long + alias * 99, KUBECONFIG)) == 100
    assert problem(long + alias * 100, KUBECONFIG) == (said, 101, True)


def test_merges_cost_no_more_than_they_hold() -> None:
    """Many different mappings in one: each merged into the growing whole would take quadratic time."""
    sources = "\n".join(f"- &m{n} {{k{n}: v, l{n}: v, m{n}: v, n{n}: v}}" for n in range(9_000))
    text = f"{sources}\n- {{<<: [{', '.join(f'*m{n}' for n in range(9_000))}]}}"
    assert len(document(text, SETTINGS)[-1]) == 36_000


def test_a_file_that_a_person_keeps_has_a_million_values_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MOST", 1000)
    text = "- x\n" * 999
    assert len(document(text, KUBECONFIG)) == 999
    assert problem(text + "- x", SETTINGS) == ("it holds more than 1,000 values", 1000, True)
    assert len(document(text * 2, OBJECTS)) == 1998


@pytest.mark.parametrize("text", ["", "# nothing", "---", "---\n...\n"])
def test_empty_documents(text: str) -> None:
    assert document(text, KUBECONFIG) is None


def test_several_documents() -> None:
    assert documents("a: 1\n---\n---\n- 2\n", OBJECTS) == [{"a": 1}, None, [2]]
    with pytest.raises(YamlError) as caught:
        document("a: 1\n---\n" + "[" * 200, SETTINGS)
    assert (caught.value.problem, caught.value.line) == ("a second document begins", 2)


@pytest.mark.parametrize("text", ["a: [b", "a: b: c", "\tx: 1", "a: 'b", "- a\nb", "{a: 1", "]", "a: @b", "&", "*"])
def test_what_is_no_yaml_says_where(text: str) -> None:
    for dialect in DIALECTS.values():
        why, line, refused = problem(text, dialect)
        assert (line in range(1, text.count("\n") + 2), refused, bool(why)) == (True, False, True)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe\xfa",
        b"a: \x00",
        b"a: \x1b[0m",
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\UFFFFFFFF"',
        '"\\U00110000"',
        b"\xc3(",
    ],
    ids=repr,
)
def test_what_is_no_text_is_refused(text: bytes | str) -> None:
    for dialect in DIALECTS.values():
        _, _, refused = problem(text, dialect)
        assert not refused


def test_windows_writes_utf_16() -> None:
    assert document('{"a": "ü"}'.encode("utf-16"), OBJECTS) == {"a": "ü"}


ONE_SENTENCE = {
    "merges": (MERGES, "the tag !!merge is not one of YAML's core at line 2", "it uses YAML anchors at line 1"),
    "laughs": (LAUGHS, "its aliases stand for more than 100,000 values at line 6", "it uses YAML anchors at line 1"),
}


@pytest.mark.parametrize("bomb", ONE_SENTENCE)
def test_a_bomb_is_one_sentence(bomb: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, _, in_objects = ONE_SENTENCE[bomb]
    path = tmp_path / "bomb.yaml"
    path.write_text(f"kind: Config\n{text}\n")
    assert run(["-f", str(path)]) == 1
    line = in_objects.replace("line 1", "line 2")
    assert capsys.readouterr() == ("", f"error: {path} is not what kubectl prints: {line}; {SAVE}\n")
    said, _, number = ONE_SENTENCE[bomb][1].rpartition(" at line ")
    assert run(["--kubeconfig", str(path)]) == 1
    where = f"is not valid YAML at line {int(number) + 1}: {said}"
    assert capsys.readouterr() == ("", f"error: the kubeconfig {path} {where}; correct it, or {NEXT}\n")
    for flag in ("--states", "--policy"):
        assert run(["-f", "none.json", flag, str(path)]) == 2
        assert capsys.readouterr() == ("", f"error: bomb.yaml {where}; correct it there\n")


def test_a_number_in_base_60_is_text_and_costs_nothing(tmp_path: Path) -> None:
    objects = yaml.safe_dump_all([node(), pod("p", container("c", "1"))])
    text = f"{objects}---\nkind: Other\nx: {SIXTY}\n"
    assert read_text(tmp_path, text).reading.ignored == {"Other": 1}
    found = read_text(tmp_path, objects.replace("name: n1", "name: 1:30").replace("nodeName: n1", "nodeName: 1:30"))
    assert [each.name for each in found.nodes] == ["1:30"]


def test_settings_may_use_anchors_and_merges() -> None:
    first, second = states.parse(
        "- &a {cgroup: v2, driver: systemd}\n- {<<: *a, match: {name: x}, cgroup: v1}", "s.yaml"
    )
    assert ((first.cgroup, first.driver), (second.cgroup, second.driver)) == (("v2", "systemd"), ("v1", "systemd"))
    with pytest.raises(
        UsageError, match=r"^s\.yaml is not valid YAML at line 2: the key cgroup stands twice; correct it there$"
    ):
        states.parse("- {driver: systemd}\n- {cgroup: v1, cgroup: v2}", "s.yaml")


def test_damaged_text_has_one_meaning_whichever_parser_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take some texts for no YAML that the other reads; what both read is the same."""

    def read(data: bytes) -> str | None:
        try:
            return repr(documents(data, KUBECONFIG))
        except YamlError:
            return None

    damaged = []
    for number in range(200):
        random = Random(number)
        text = yaml.safe_dump(structure(random, seeds.states()), allow_unicode=True)
        damaged.append(damage(random, text.encode()))
    ours = list(map(read, damaged))
    other = next(
        each for each in (_CSAFE, yaml.SafeLoader) if each is not getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    monkeypatch.setattr(yaml, "CSafeLoader", other, raising=False)
    theirs = list(map(read, damaged))
    both = [(our, their) for our, their in zip(ours, theirs, strict=True) if None not in (our, their)]
    assert [pair for pair in both if pair[0] != pair[1]] == []
    assert 50 < len(both) < 200
