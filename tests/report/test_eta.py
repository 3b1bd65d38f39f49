"""Time left, worked by hand."""

from __future__ import annotations

from raybench.report.eta import Ended, Running, time_left_s


def test_nothing_is_known_before_the_first_trial_ended() -> None:
    """And nothing is left when nothing waits."""
    assert time_left_s([], waiting=3) is None
    assert time_left_s([], waiting=0) == 0.0


def test_start_up_is_counted_once_a_group() -> None:
    """7 s with 5 s of start-up, then 2 s: work is 2 s a trial; 4 wait and open 1 group: 4 x 2 + 5 = 13 s."""
    ended = [Ended(7.0, 5.0, opened_group=True), Ended(2.0)]
    assert time_left_s(ended, waiting=4, groups_left=1) == 13.0


def test_groups_are_opened_as_often_as_so_far_when_nobody_counted_them() -> None:
    """One of two opened one: 4 waiting open 2: 4 x 2 + 2 x 5 = 18 s."""
    ended = [Ended(7.0, 5.0, opened_group=True), Ended(2.0)]
    assert time_left_s(ended, waiting=4) == 18.0


def test_the_running_trial_counts_for_what_is_left_of_it() -> None:
    """2 s of 2 + 5 expected are over, and 1 x 2 s waits: 5 + 2 = 7 s; one that overruns takes nothing from others."""
    ended = [Ended(7.0, 5.0, opened_group=True), Ended(2.0)]
    assert time_left_s(ended, waiting=1, groups_left=0, running=Running(2.0, opens_group=True)) == 7.0
    assert time_left_s(ended, waiting=1, groups_left=0, running=Running(60.0)) == 2.0
