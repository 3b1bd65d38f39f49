"""What a run needs installed, and planning and reading do not: told in one line where it is missing."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from typing import Final

from raybench.errors import UsageError

_INSTALLED_AS: Final = {"ray": "ray[train,tune,data]", "torch": "torch", "psutil": "psutil", "pynvml": "nvidia-ml-py"}
DRIVER: Final = ("ray", "psutil")      # NVML may be absent where there is no GPU
"""Modules without which no run can be driven from here, wherever its workers are."""


def need(*modules: str) -> None:
    """Nothing where all can be imported. Raises UsageError that names whatever is missing and how to install it."""
    if all(map(_is_there, modules)):
        return
    missing = [module for module in _INSTALLED_AS if not _is_there(module)]
    raise UsageError(
        f"running needs {', '.join(missing)}: not installed here, so raybench can only plan and read; "
        f"to install: {shlex.join(['pip', 'install', *map(_INSTALLED_AS.__getitem__, missing)])}"
    )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False
