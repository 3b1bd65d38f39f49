"""Whether a rank's share of split work is large enough to fill a GPU. No torch, so that `plan` is instant.

Which GPU is not known when a sweep is planned, so the yardstick is one that is common where scaling is measured: an
H100 or H200 with 132 multiprocessors. A share that cannot occupy each of them once leaves part of the chip idle, and
adding GPUs then makes every one of them idler (GT-16: (128, 4096) over 8 GPUs).
"""

from __future__ import annotations

from typing import Final

MULTIPROCESSORS: Final = 132
TILE: Final = 128                  # rows and columns of the piece of a product that one multiprocessor works on
NUMBERS_IN_FLIGHT: Final = 2048 * 4    # of one multiprocessor: 2048 resident threads, each with a load of 16 bytes


def few_tiles(rows: int, columns: int) -> bool:
    """Whether a product of that size has fewer tiles of 128 x 128 than a GPU has multiprocessors."""
    return -(-rows // TILE) * -(-columns // TILE) < MULTIPROCESSORS


def few_numbers(numbers: int) -> bool:
    """Whether arithmetic number by number has fewer than a GPU holds in flight: about a million."""
    return numbers < MULTIPROCESSORS * NUMBERS_IN_FLIGHT
