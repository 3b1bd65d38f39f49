"""Which GPUs train your models fastest, how that scales, and what it costs: sweeps on Ray, results in Parquet.

What is exported here is imported when it is first used, so that `import raybench` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from raybench.version import __version__

if TYPE_CHECKING:
    from raybench.api import run
    from raybench.judge.compare import compare
    from raybench.judge.scaling import scaling
    from raybench.results.load import load
    from raybench.spec.plan import plan

__all__ = ["__version__", "compare", "load", "plan", "run", "scaling"]

_HOMES = {
    "compare": "raybench.judge.compare",
    "load": "raybench.results.load",
    "plan": "raybench.spec.plan",
    "run": "raybench.api",
    "scaling": "raybench.judge.scaling",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
