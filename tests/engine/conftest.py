"""One thread for torch: its threads spin while they wait for each other, which on a busy machine takes seconds."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
