"""From where on a change counts."""

import pytest

from kubectl_cgaudit.audit.thresholds import Thresholds


@pytest.mark.parametrize(("least", "change", "counts"), [(1e-7, 0.0, False), (1e-9, 0.0, False), (1e-9, 1e-9, True)])
def test_what_does_not_change_reaches_no_threshold_however_small(least: float, change: float, counts: bool) -> None:
    tiny = Thresholds(system_loss=least, system_gain=least, pod_move=least)
    assert [tiny.loses(-change), tiny.gains(change), tiny.moves(-change)] == [counts] * 3
    assert [tiny.loses(change), tiny.gains(-change), tiny.moves(change)] == [False] * 3


@pytest.mark.parametrize(("change", "counts"), [(0.05, True), (0.04999995, True), (0.0499998, False)])
def test_what_is_a_threshold_but_for_its_last_digit_reaches_it(change: float, counts: bool) -> None:
    limits = Thresholds(system_loss=0.05, system_gain=0.05, pod_move=0.05)
    assert [limits.loses(-change), limits.gains(change), limits.moves(-change)] == [counts] * 3
