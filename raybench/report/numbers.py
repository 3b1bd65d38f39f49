"""Figures as a person reads them: three or four significant digits, thin grouping, the unit in the header."""

from __future__ import annotations

import math
from typing import Any

from raybench.report.text import GROUP, NULL


def is_null(value: Any) -> bool:
    """None, NaN and pandas' NA are all one thing to a reader."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def count(value: Any) -> str:
    """A whole number: `3 502 592`."""
    return NULL if is_null(value) else f"{int(value):,}".replace(",", GROUP)


def significant(value: Any, digits: int = 4) -> str:
    """`41 823`, `1 234`, `12.35`, `0.01234`; digits before the point are never rounded away."""
    if is_null(value):
        return NULL
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    if number == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(number)))
    if magnitude < -4:
        return f"{number:.{digits - 1}e}"
    rounded = round(number, digits - 1 - magnitude)
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    return f"{number:,.{decimals}f}".replace(",", GROUP)


def three(value: Any) -> str:
    """Three significant digits."""
    return significant(value, 3)


def percent(value: Any, decimals: int = 1) -> str:
    """A ratio of 0..1 as a percentage without its sign: `39.5`, `0.4`."""
    return NULL if is_null(value) else f"{100 * float(value):.{decimals}f}"


def gib(value: Any) -> str:
    """Bytes as GiB."""
    return NULL if is_null(value) else significant(float(value) / 2**30, 3)


def size(value: Any) -> str:
    """Bytes in the unit in which they are at least 1: `16.0 KiB`, `1.25 GiB`, in GiB from there on."""
    if is_null(value):
        return NULL
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 2**power:
            return f"{significant(float(value) / 2**power, 3)} {unit}"
    return f"{count(value)} B"


def giga(value: Any) -> str:
    """FLOPs as GFLOP, bytes as GB."""
    return NULL if is_null(value) else significant(float(value) / 1e9)


def flop_rate(tflops: float) -> str:
    """`1.430 TFLOP/s`, `143.0 GFLOP/s`: the unit in which the figure is at least 1."""
    return f"{significant(tflops)} TFLOP/s" if tflops >= 1 else f"{significant(1e3 * tflops)} GFLOP/s"


def seconds(value: Any, *, fine: bool = True) -> str:
    """A duration with its unit: `0.8 s` (whole seconds unless `fine`), `38 s`, `2m03s`, `1h04m`."""
    if is_null(value):
        return NULL
    number = float(value)
    if fine and number < 9.95:
        return f"{number:.1f} s"
    whole = round(number)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def spread(low: Any, high: Any, middle: Any) -> str:
    """An interval as what it reaches to each side: `±0.4 %`, `±>100 %`; empty where there is none."""
    if is_null(low) or is_null(high) or is_null(middle) or not middle:
        return ""
    reach = (float(high) - float(low)) / 2 / float(middle)
    return f"±{100 * reach:.1f} %" if reach <= 1 else "±>100 %"


def ratio(value: Any, low: Any = None, high: Any = None) -> str:
    """`1.93x [1.90, 1.96]`; the interval only where there is one."""
    if is_null(value):
        return NULL
    told = f"{_ratio(float(value))}x"
    return told if is_null(low) or is_null(high) else f"{told} [{_ratio(float(low))}, {_ratio(float(high))}]"


def _ratio(value: float) -> str:
    """Two decimals say 1 % where ratios are near 1; further away, three digits do."""
    return f"{value:.2f}" if 0.1 <= value < 10 else significant(value, 3)
