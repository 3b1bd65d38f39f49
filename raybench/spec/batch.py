"""The three batch numbers: any two give the third, and what does not divide is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """`global_batch` = `micro_batch` x `grad_accum` x workers, in samples."""

    micro_batch: int
    grad_accum: int
    global_batch: int


def batch_of(
    micro_batch: int | None, grad_accum: int | None, global_batch: int | None, *, workers: int, default_micro: int
) -> Batch | str:
    """All three numbers from those given, or the sentence that says why there are none.

    `grad_accum` is 1 unless given or derived; `default_micro` serves where neither batch size is given.
    """
    if global_batch is None:
        micro, accum = micro_batch or default_micro, grad_accum or 1
        return Batch(micro, accum, micro * accum * workers)
    if micro_batch is None:
        accum = grad_accum or 1
        if global_batch % (accum * workers):
            return f"global_batch {global_batch} does not divide by grad_accum {accum} x num_workers {workers}"
        return Batch(global_batch // (accum * workers), accum, global_batch)
    if grad_accum is None:
        if global_batch % (micro_batch * workers):
            return f"global_batch {global_batch} does not divide by micro_batch {micro_batch} x num_workers {workers}"
        return Batch(micro_batch, global_batch // (micro_batch * workers), global_batch)
    if micro_batch * grad_accum * workers != global_batch:
        return (
            f"global_batch {global_batch} is not micro_batch {micro_batch} x grad_accum {grad_accum}"
            f" x num_workers {workers}"
        )
    return Batch(micro_batch, grad_accum, global_batch)
