"""How figures read."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from raybench.report.numbers import count, gib, giga, percent, ratio, seconds, significant, size, spread, three

G = "\u202f"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (41823.4, f"41{G}823"), (1234.0, f"1{G}234"), (12.345, "12.35"), (999.96, f"1{G}000"), (0.012345, "0.01235"),
        (0, "0"), (1e-7, "1.000e-07"), (-12.345, "-12.35"), (12345678.9, f"12{G}345{G}679"), (None, "–"),
        (pd.NA, "–"), (math.nan, "–"), (math.inf, "inf"),
    ],
)  # fmt: skip
def test_four_significant_digits(value: Any, text: str) -> None:
    """Digits before the point stay, unknown is a dash."""
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(512, "512 B"), (1024, "1.00 KiB"), (3 * 2**19, "1.50 MiB"), (1300 * 2**30, f"1{G}300 GiB"), (None, "–")],
)
def test_sizes_carry_their_unit(value: Any, text: str) -> None:
    """The one in which they are at least 1, and never above GiB, which people know their GPUs by."""
    assert size(value) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (count(3502592), f"3{G}502{G}592"), (three(0.19312), "0.193"), (percent(0.4096), "41.0"),
        (gib(15 * 2**30), "15.0"), (giga(18.466228224e9), "18.47"), (count(None), "–"), (percent(pd.NA), "–"),
    ],
)  # fmt: skip
def test_units_that_headers_name(shown: str, text: str) -> None:
    """Percentages, GiB and GFLOP without their unit."""
    assert shown == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.84, "0.8 s"), (9.949, "9.9 s"), (9.96, "10 s"), (59.6, "1m00s"), (123, "2m03s"), (3840, "1h04m"), (None, "–")],
)
def test_durations(value: float | None, text: str) -> None:
    """With the unit that a person would choose."""
    assert seconds(value) == text


def test_a_time_left_is_in_whole_seconds() -> None:
    """Tenths would pretend to know."""
    assert seconds(6.4, fine=False) == "6 s"


def test_an_interval_is_what_it_reaches_to_each_side() -> None:
    """98 to 102 around 100 is 2 %."""
    assert spread(98.0, 102.0, 100.0) == "±2.0 %"
    assert spread(0.0, 400.0, 100.0) == "±>100 %"       # 200 %: nothing is known
    assert spread(None, 102.0, 100.0) == ""


def test_ratios() -> None:
    """Two decimals near 1, three digits further away, the interval where there is one."""
    assert ratio(1.934, 1.901, 1.962) == "1.93x [1.90, 1.96]"
    assert (ratio(12.34), ratio(0.01234), ratio(2.0, pd.NA, pd.NA), ratio(None)) == ("12.3x", "0.0123x", "2.00x", "–")
