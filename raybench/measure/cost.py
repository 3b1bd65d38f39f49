"""What work costs in money: prices an hour and rates a second in, USD out. NaN in is NaN out."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

SECONDS_PER_HOUR: Final = 3600.0

Floats = npt.NDArray[np.float64]


def usd_of(usd_per_hour: Floats, seconds: Floats) -> Floats:
    """The price of so many seconds: USD/h x s / 3600."""
    return usd_per_hour * seconds / SECONDS_PER_HOUR


def usd_per_million(usd_per_hour: Floats, per_s: Floats) -> Floats:
    """The price of a million samples (tokens) at a rate of so many a second."""
    return usd_of(usd_per_hour, 1e6 / per_s)


def per_usd(usd_per_hour: Floats, per_s: Floats) -> Floats:
    """Samples (tokens) for one USD at a rate of so many a second."""
    return per_s * SECONDS_PER_HOUR / usd_per_hour
