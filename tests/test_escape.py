"""Whatever a cluster calls things, every way of writing keeps it text."""

import json
import sys
import unicodedata

import pytest
import yaml

from kubectl_cgaudit.report.escape import json_text, markdown, prose, shorten, visible, without_commands, yaml_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain-name.1", "plain-name.1"),
        ("Zoë 東京 😀", "Zoë 東京 😀"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\r", r"a\x0ab\x09c\x0d"),
        ("\x00\x7f\x80\x9bÿ", r"\x00\x7f\x80\x9bÿ"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("a\u200bb\u200dc\ufeffd", r"a\u200bb\u200dc\ufeffd"),
        ("soft\u00adhyphen", r"soft\xadhyphen"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\ue000\ud800\U000e0041\U0010ffff", r"\ue000\ud800\U000e0041\U0010ffff"),
        ("a\ufe0fb\u034fc\u3164d\U000e0100", r"a\ufe0fb\u034fc\u3164d\U000e0100"),
        ("##[error]x ##vso[y ##teamcity[z ###[", r"\x23#[error]x \x23#vso[y \x23#teamcity[z #\x23#["),
        ("## a [b] #[c] ##1[", "## a [b] #[c] ##1["),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_nothing_invisible_is_left_of_any_character() -> None:
    # Each alone: a text in which nothing needs an escape is not looked at further.
    shown = "".join(visible(chr(code)) for code in range(sys.maxunicode + 1))
    left = {unicodedata.category(character) for character in shown}
    assert not left & {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
    assert {"Lu", "Ll", "Nd", "Zs", "Sm"} <= left


def test_visible_twice_is_visible_once() -> None:
    assert visible(visible("a\x1b\u202e")) == visible("a\x1b\u202e")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("shop/checkout-d5491e7e7-22276", "shop/checkout-d5491e7e7-22276"),
        ("-62%..0%", "-62%..0%"),
        ("3.7 : 1", "3.7 : 1"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("`code`", r"\`code\`"),
        ("*a* __b__ ~~c~~", r"\*a\* \_\_b\_\_ \~\~&#8203;c\~\~"),
        ("[x](javascript:alert)", r"\[x\](javascript:alert)"),
        ("![x](y)", r"\!\[x\](y)"),
        ("&lt;b&gt;", "&amp;&#8203;lt;b&amp;&#8203;gt;"),
        ("$x$", "&#36;&#8203;x&#36;"),
        ("@admins", "@&#8203;admins"),
        ("a@b.example", "a@&#8203;b.example"),
        ("see #12 and !7", r"see \#&#8203;12 and \!&#8203;7"),
        ("https://x.example", "https:&#8203;//x.example"),
        ("preview/gh-12 and GH-7", "preview/gh&#8203;-12 and GH&#8203;-7"),
        ("gh-pages high-5", "gh-pages high-5"),
        ("WWW.x.example", "WWW&#8203;.x.example"),
        (":tada: 10:20:30", ":&#8203;tada: 10:20:30"),
        ("line\nbreak", r"line\\x0abreak"),
        ("  # title ", r"\# title"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("---", r"\---"),
        ("===", r"\==="),
    ],
)
def test_markdown(text: str, escaped: str) -> None:
    assert markdown(text) == escaped


def test_prose_keeps_our_code_and_escapes_the_rest() -> None:
    assert prose("give *it*: `systemctl set-property a_b=39`, or <b>.") == (
        r"give \*it\*: `systemctl set-property a_b=39`, or &lt;b&gt;."
    )


@pytest.mark.parametrize("text", ["one ` alone", "two `` in a row `x`", "` `", "a `b` c `"])
def test_prose_makes_no_code_of_backticks_that_do_not_pair(text: str) -> None:
    assert prose(text) == markdown(text)
    assert "`" not in prose(text).replace("\\`", "")


def test_shorten_marks_the_cut() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
    assert len(shorten("x" * 10_000, 253)) == 253


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" a `b` c ", "a `b` c"),
        ("`*a*` *b*", "`*a*` \\*b\\*"),
        ("a `b", "a \\`b"),
        ("a `` b ``", "a \\`\\` b \\`\\`"),
        ("`a` or `b`", "`a` or `b`"),
        ("`a`", "`a`"),
        ("a ` ` b", "a \\` \\` b"),
    ],
)
def test_code_in_a_sentence(text: str, shown: str) -> None:
    assert prose(text) == shown


@pytest.mark.parametrize("text", ["- a", "1. a", "12) a", "= a", "+", "-", "--- a"])
def test_no_text_begins_a_list_a_heading_or_a_rule(text: str) -> None:
    assert "\\" in markdown(text)


@pytest.mark.parametrize(("most", "shown"), [(3, "abc"), (2, "a…"), (1, "…"), (4, "abc")])
def test_a_cut_is_marked(most: int, shown: str) -> None:
    assert shorten("abc", most) == shown


def test_data_is_the_same_data_and_acts_on_nothing() -> None:
    hostile = {"a": "x\x7fy\x9b2J\u202e\u200b\U000e0041é東😀\ufe0f", "b": "\t\n", "c": "##[error] ###vso[x ## [a"}
    text = json.dumps(hostile, ensure_ascii=False, indent=1)
    shown = json_text(text)
    assert shown == (
        '{\n "a": "x\\u007fy\\u009b2J\\u202e\\u200b\\udb40\\udc41é東😀\\ufe0f",\n "b": "\\t\\n",\n'
        ' "c": "\\u0023#[error] #\\u0023#vso[x ## [a"\n}'
    )
    assert json.loads(shown) == hostile
    # YAML takes no two escapes for one character.
    assert yaml_text(text) == shown.replace("\\udb40\\udc41", "\\U000e0041")
    assert yaml.safe_load(yaml_text(text)) == hostile
    plain = json.dumps({**hostile, "c": "# #[x]"})
    assert json_text(plain) is plain
    assert yaml_text(plain) is plain


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("::error::x", "COLON:error::x"),
        ("a\n \t\u00a0\u3000::set-output name=a::b\n", "a\n \t\u00a0\u3000COLON:set-output name=a::b\n"),
        ("a\r\n::x\r\n::y", "a\r\nCOLON:x\r\nCOLON:y"),
        ("::::x", "COLON:::x"),
        ("a ::error::", "a ::error::"),
        (":root {\n: x\nx:\n", ":root {\n: x\nx:\n"),
        ("\n:", "\nCOLON"),
        ("\n\n", "\n\n"),
    ],
)
def test_no_line_is_a_command_to_a_runner(text: str, left: str) -> None:
    assert without_commands(text, "COLON") == left
