"""Other image classifiers, by their names in torchvision, where that is installed."""

from __future__ import annotations

import difflib
from typing import Any

from torch import nn

from raybench.errors import UnsupportedError


def torchvision_network(name: str, num_classes: int) -> nn.Module:
    """torchvision's classifier of that name, its weights drawn, not downloaded.

    Raises:
        UnsupportedError: torchvision cannot be imported, or has no such classifier.
    """
    models = _models(name)
    known = models.list_models(module=models)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f'; did you mean "torchvision:{near[0]}"?' if near else ""
        raise UnsupportedError(f'torchvision has no classifier "{name}"{hint}')
    network: nn.Module = models.get_model(name, weights=None, num_classes=num_classes)
    return network


def _models(name: str) -> Any:
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:      # a build for another torch raises RuntimeError
        told = " ".join(str(error).split())
        raise UnsupportedError(
            f"model torchvision:{name} needs torchvision on every worker ({told}); install the one that fits torch, "
            "or take one of resnet18 to resnet152"
        ) from error
    return models
