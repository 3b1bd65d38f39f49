"""A line of whoever looks for what is wrong: with results, or with a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be, what it is about, and what to do."""

    level: Literal["error", "warning"]
    where: str
    what: str
    cure: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.what}; {self.cure}"
