"""As whom an API server is asked: --as, --as-group, and what a kubeconfig's user says."""

from typing import Any

import pytest

from kubectl_cgaudit.collect import impersonation
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.errors import ClusterError, UsageError


def impersonated(user: dict[str, Any], **flags: Any) -> list[tuple[str, str]]:
    return impersonation.headers(Connection(**flags), user)


def test_whom_the_headers_name() -> None:
    assert impersonated({}) == []
    assert impersonated({"as": "a", "as-uid": 7}) == [("Impersonate-User", "a"), ("Impersonate-Uid", "7")]
    assert impersonated({"as": "a", "as-groups": ["g"]}, as_user="b") == [
        ("Impersonate-User", "b"),
        ("Impersonate-Group", "g"),
    ]
    # A key may be a number to YAML, and holds what a header's name cannot.
    assert impersonated({"as": "a", "as-user-extra": {7: [8], "a/b%": ["c"], "!#$&'*+^`|": ["d"]}}) == [
        ("Impersonate-User", "a"),
        ("Impersonate-Extra-7", "8"),
        ("Impersonate-Extra-a%2Fb%25", "c"),
        ("Impersonate-Extra-!#$&'*+^`|", "d"),
    ]
    assert impersonated({"as": "a", "as-user-extra": {"k y": ["1", "2"], "l": None}}) == [
        ("Impersonate-User", "a"),
        ("Impersonate-Extra-k%20y", "1"),
        ("Impersonate-Extra-k%20y", "2"),
    ]


@pytest.mark.parametrize(
    ("user", "flags"),
    [
        ({}, {"as_groups": ("g",)}),
        ({"as-groups": ["g"]}, {}),
        ({"as-uid": "7"}, {}),
        ({"as-user-extra": {"k": ["v"]}}, {}),
    ],
)
def test_nobody_is_impersonated_in_part(user: dict[str, Any], flags: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^a group cannot be impersonated without a user; add --as USER$"):
        impersonated(user, **flags)


@pytest.mark.parametrize("character", ["\n", "\r", "\x00", "\x1b", "\x7f"])
def test_nobody_has_a_control_character_in_a_name(character: str) -> None:
    name = f"a{character}b"
    what = f"{name!r} holds a control character, which no name has"
    for flags in ({"as_user": name}, {"as_user": "a", "as_groups": ("g", name)}):
        with pytest.raises(UsageError) as wrong:
            impersonated({}, **flags)
        assert str(wrong.value) == f"{what}; correct --as or --as-group"
    for user in ({"as": name}, {"as": "a", "as-groups": [name]}, {"as": "a", "as-user-extra": {"k": [name]}}):
        with pytest.raises(ClusterError) as caught:
            impersonated(user)
        assert str(caught.value) == f"{what}, and the kubeconfig impersonates it; correct its user entry"
    assert impersonated({"as": "tab\there"}) == [("Impersonate-User", "tab\there")]


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"as": "a", "as-groups": "admins"}, "as-groups in the kubeconfig is no list"),
        ({"as": "a", "as-user-extra": ["k"]}, "as-user-extra in the kubeconfig is no mapping of lists"),
        ({"as": "a", "as-user-extra": {"k": "v"}}, "as-user-extra in the kubeconfig is no list"),
    ],
)
def test_impersonation_that_is_no_list(user: dict[str, Any], field: str) -> None:
    with pytest.raises(ClusterError, match=f"^{field}; correct its user entry$"):
        impersonated(user)
