"""Which schedules the manifests take, and what they say of the others."""

import pytest

from kubectl_cgaudit.manifests.schedule import is_schedule


@pytest.mark.parametrize(
    "text",
    [
        *("17 5 * * *", "0 0 1 1 0", "59 23 31 12 6", "*/15 * * * *", "5-10/2,30 0-23 ? * mon-FRI", "0 0 1 jan,Dec ?"),
        *("0  5 * * *", "@daily", "1/5 * * * *"),
    ],
)
def test_schedules_the_controller_takes(text: str) -> None:
    assert is_schedule(text)


@pytest.mark.parametrize(
    ("schedule", "first", "names"),
    [
        ("0 0 1 {} *", 1, "jan feb mar apr may jun jul aug sep oct nov dec"),
        ("0 0 * * {}", 0, "sun mon tue wed thu fri sat"),
    ],
)
def test_each_month_and_day_of_the_week_has_its_name(schedule: str, first: int, names: str) -> None:
    for number, name in enumerate(names.split(), first):
        # A range may begin and end with the same, and not end before it begins.
        taken = [is_schedule(schedule.format(f"{start}-{name}")) for start in (number, number + 1)]
        assert taken == [True, False], name


@pytest.mark.parametrize("macro", ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"])
def test_each_macro_is_a_schedule(macro: str) -> None:
    assert is_schedule(macro)
    assert not is_schedule(macro[1:])


@pytest.mark.parametrize(
    "text",
    [
        *("60 5 * * *", "0 24 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 1 0 *", "0 0 1 13 *", "0 0 * * 7", "99 99 * * *"),
        *("5-1 * * * *", "*/0 * * * *", "mon * * * *", "0 0 * * january", "0 0 * * fri-mon", "* * * *", "* * * * * *"),
        *(
            "",
            " 0 5 * * *",
            "0 5 * * *\n",
            "0\t5 * * *",
            "1,, * * * *",
            "-1 * * * *",
            "1- * * * *",
            "@never",
            "1-2-3 * * * *",
        ),
        *("*-5 * * * *", "\u0661 * * * *"),
    ],
)
def test_schedules_the_controller_refuses(text: str) -> None:
    assert not is_schedule(text)
