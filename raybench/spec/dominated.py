"""Which configs need no less memory than another: what ran out of it says how they would end."""

from __future__ import annotations

from raybench.spec.config import TrialConfig, pairing_key

_GROWS = ("micro_batch", "seq_len")
_MAY_DIFFER = frozenset({*_GROWS, "grad_accum", "global_batch"})


def needs_more(config: TrialConfig, than: TrialConfig) -> str | None:
    """`micro_batch 8 > 4`: why a config needs more memory on each rank than another; None where that is not certain.

    It is where nothing differs but a larger micro batch or longer sequences. Gradients that live through a second
    micro step may outweigh a smaller batch, so one that accumulates proves nothing for one that does not.
    """
    sizes = [(name, getattr(config, name) or 0, getattr(than, name) or 0) for name in _GROWS]
    larger = [f"{name} {mine} > {theirs}" for name, mine, theirs in sizes if mine > theirs]
    if not larger or any(mine < theirs for _, mine, theirs in sizes):
        return None
    if (than.grad_accum or 1) > 1 and (config.grad_accum or 1) == 1:
        return None
    alike = pairing_key(config.model_dump(mode="json"), _MAY_DIFFER) == pairing_key(
        than.model_dump(mode="json"), _MAY_DIFFER
    )
    return ", ".join(larger) if alike else None
