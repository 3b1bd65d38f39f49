"""The words that people bring from other tools, with ours: consulted before likeness of spelling."""

from __future__ import annotations

from collections.abc import Container, Mapping
from types import MappingProxyType

_WORKERS = ("num_workers",)
_DURATION = ("steps", "measure")
_OURS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "activation_checkpoint": ("activation_checkpointing",),
    "amp": ("precision",),
    "autocast": ("precision",),
    "batch": ("micro_batch", "global_batch"),
    "batch_size": ("micro_batch", "global_batch"),
    "bs": ("micro_batch", "global_batch"),
    "cache": ("data_cache",),
    "dtype": ("precision",),
    "epoch": ("epochs", "measure"),
    "epochs": ("measure",),
    "gpu": ("cuda", "num_workers"),
    "gpus": _WORKERS,
    "gradient_checkpointing": ("activation_checkpointing",),
    "gradient_accumulation": ("grad_accum",),
    "gradient_accumulation_steps": ("grad_accum",),
    "iterations": _DURATION,
    "iters": _DURATION,
    "max_steps": _DURATION,
    "n_embd": ("d_model",),
    "n_head": ("num_heads", "nhead"),
    "n_layer": ("num_layers", "num_encoder_layers", "num_decoder_layers"),
    "num_epochs": ("epochs", "measure"),
    "num_gpus": _WORKERS,
    "num_steps": _DURATION,
    "samples": ("measure",),
    "seconds": ("measure",),
    "seq_length": ("seq_len",),
    "sequence_length": ("seq_len",),
    "steps": ("measure",),
    "sdpa": ("attention",),
    "tokens": ("measure",),
    "torch_compile": ("compile",),
    "workers": _WORKERS,
    "world_size": _WORKERS,
    # values
    "bfloat16": ("bf16",),
    "float": ("fp32",),
    "float16": ("fp16",),
    "float32": ("fp32",),
    "half": ("fp16",),
    "tensorfloat32": ("tf32",),
    "training": ("train",),
})
"""Keys and values alike: which of them is meant shows in what is known where the word was written."""
_MEANING = MappingProxyType({"micro_batch": " (per worker)", "global_batch": " (over all workers)"})


def ours(word: str, known: Container[str]) -> tuple[str, ...]:
    """Our words for theirs, as far as they are among those that may stand here."""
    return tuple(each for each in _OURS.get(word.lower().replace("-", "_"), ()) if each in known)


def quoted(words: tuple[str, ...]) -> str:
    """`"a"`, or `"a" (what it is) or "b"` where there is a choice."""
    return " or ".join(f'"{word}"{_MEANING.get(word, "") if len(words) > 1 else ""}' for word in words)
