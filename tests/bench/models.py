"""How fast raybench runs a model against a bare hand-written loop of the same model: A B B A blocks in one process.

    python -m tests.bench.models [POINT ...] [--blocks N] [--set KEY=VALUE ...] [--tiny]

Both arms build, compile, warm up and measure the same steps on the same batches, and free everything, in every run.
The ratio is that of the throughputs over the whole windows. `--set` changes the points, as to what a sweep has found;
`--tiny` takes shapes that a CPU runs in seconds, whose ratio says nothing about a GPU. Exit code 1 when a promise is
broken; the figures of `REFERENCE` are looked at on an H200 only.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import MappingProxyType

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from torch.autograd import DeviceType

from raybench.engine.place import Place
from raybench.engine.session import Session
from raybench.measure.statistics import Interval, paired_ratio_interval
from raybench.sources.registry import open_source
from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.samples import Batch, Images
from raybench.workloads.registry import workload

_GPT2 = "workload: decoder, model: gpt2, model.bias: false, vocab_size: 50304, seq_len: 1024, micro_batch: 64"
POINTS: Mapping[str, str] = MappingProxyType({
    "gpt2": f"{_GPT2}, precision: bf16, compile: default",
    "gpt2-bf16-parameters": f"{_GPT2}, precision: bf16_params, compile: default",
    "resnet50": "workload: resnet, model: resnet50, micro_batch: 512, precision: bf16, compile: default",
    "fb-small": "workload: decoder, model: small, seq_len: 512, micro_batch: 4, precision: bf16, "
                "compile: reduce-overhead",
    "encdec-211m": "workload: encdec, model: 211m, seq_len: 256, micro_batch: 64, precision: fp16, compile: default",
})  # fmt: skip
TINY: Mapping[str, str] = MappingProxyType({
    "gpt2": "workload: decoder, model: gpt2, model.d_model: 32, model.num_layers: 2, model.num_heads: 2, "
            "model.d_ff: 64, vocab_size: 128, seq_len: 32, micro_batch: 4",
    "fb-small": "workload: decoder, model: small, model.d_model: 32, model.num_layers: 2, model.num_heads: 2, "
                "model.d_ff: 64, vocab_size: 128, seq_len: 32, micro_batch: 4",
    "resnet50": "workload: resnet, model: resnet18, model.width: 8, model.image_size: 32, micro_batch: 4",
    "encdec-211m": "workload: encdec, model.d_model: 32, model.dim_feedforward: 64, vocab_size: 128, seq_len: 32, "
                   "micro_batch: 4",
})  # fmt: skip
REFERENCE: Mapping[str, float] = MappingProxyType({
    "gpt2": 525e3 / 1024,                    # samples/s: 525k tokens/s
    "gpt2-bf16-parameters": 541e3 / 1024,
    "resnet50": 7000.0,
    "fb-small": 4 / 4.95e-3,                 # 4 samples in 4.95 ms
    "encdec-211m": 888.0,
})
"""Bare torch 2.11 loops on one H200, medians of 20 steps, in samples/s. Within 2 % of them is kept."""
LEAST_RATIO, NEAR = 0.99, 0.98
HELD_BATCHES = 4
PROFILED_STEPS = 5
_MATMUL = re.compile(r"gemm|nvjet|cutlass|xmma|cublas|cudnn.*conv|implicit_convolve|wgrad|dgrad|fprop", re.I)
_ATTENTION = re.compile(r"flash|fmha|attention|sdpa", re.I)


@dataclass(frozen=True)
class Measured:
    """One point: throughputs in samples/s, and where the device's time goes (shares of a step; None on CPU)."""

    name: str
    config: TrialConfig
    raybench: float
    bare: float
    ratio: Interval | None
    matmul_share: float
    busy: Mapping[str, float] | None


def main(words: Sequence[str]) -> int:
    """Measure the named points, all without a name."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.models")
    parser.add_argument("points", nargs="*")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args(words)
    points = TINY if asked.tiny else POINTS
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    place = Place(rank=0, world_size=1, local_rank=0, device=str(device), host="here", node_key="")
    session = Session(place)
    peaks = {dtype: matmul_flops_per_s(device, dtype) for dtype in (torch.bfloat16, torch.float16, torch.float32)}
    measured = [
        compare(name, config_of(points[name], asked.overrides, tiny=asked.tiny), session, place, asked.blocks, peaks)
        for name in asked.points or points
    ]
    session.close()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    Console(width=None if sys.stdout.isatty() else 160).print(table(measured, name))
    judged = device.type == "cuda" and not asked.tiny
    return 0 if not judged or all(kept(one, name) for one in measured) else 1


def config_of(base: str, overrides: Sequence[str], *, tiny: bool) -> TrialConfig:
    """The config of a point. No wrapper, since the bare loop has none; few batches, all on the device."""
    steps = "warmup: 5, measure: 20" if tiny else "warmup: 20, measure: 100"
    text = f"name: bench\nbase: {{{base}, strategy: none, {steps}}}\n"
    plain = expand(sweep_from_bytes(text.encode(), "bench", overrides)).trials[0].config
    samples = HELD_BATCHES * (plain.micro_batch or 1)
    (trial,) = expand(sweep_from_bytes(text.encode(), "bench", [*overrides, f"source.num_samples={samples}"])).trials
    return trial.config


def compare(
    name: str, config: TrialConfig, session: Session, place: Place, blocks: int, peaks: Mapping[torch.dtype, float]
) -> Measured:
    """A B B A blocks: raybench, bare, bare, raybench. The first run of each, which compiles anew, does not count."""
    def inside() -> float:
        result = session.run(config)
        return result.measured_samples / result.measured_s

    def bare() -> float:
        return bare_loop(config, place)[0]

    inside()
    _, busy = bare_loop(config, place, profiled=True)
    runs = [(inside(), bare(), bare(), inside()) for _ in range(blocks)]
    counts = workload(config.workload).counts(config)
    a = statistics.median(rate for a1, _, _, a2 in runs for rate in (a1, a2))
    b = statistics.median(rate for _, b1, b2, _ in runs for rate in (b1, b2))
    flops_per_s = a / counts.samples_per_step * counts.model_flops_per_step
    return Measured(
        name=name,
        config=config,
        raybench=a,
        bare=b,
        ratio=paired_ratio_interval([((a1 * a2) / (b1 * b2)) ** 0.5 for a1, b1, b2, a2 in runs]),
        matmul_share=flops_per_s / peaks[_product_dtype(config)],
        busy=busy,
    )


def _product_dtype(config: TrialConfig) -> torch.dtype:
    kinds = {"bf16": torch.bfloat16, "bf16_params": torch.bfloat16, "fp16": torch.float16}
    return kinds.get(config.precision, torch.float32)


# -- the bare loop -----------------------------------------------------------------------------------------------------


def bare_loop(
    config: TrialConfig, place: Place, *, profiled: bool = False
) -> tuple[float, Mapping[str, float] | None]:
    """Samples a second of the loop that anybody would write, and with `profiled` where the device's time goes."""
    device = place.torch_device
    step = bare_step(config, place)
    for _ in range(config.warmup.steps or 0):
        step()
    synchronize(device)
    steps = config.measure.steps or 1
    began = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize(device)
    step_s = (time.perf_counter() - began) / steps
    busy = device_time(step, step_s) if profiled and device.type == "cuda" else None
    del step
    torch._dynamo.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return (config.micro_batch or 1) / step_s, busy


def bare_step(config: TrialConfig, place: Place) -> Callable[[], None]:
    """Model, optimizer and batches; a call is one training step."""
    device, low = place.torch_device, _product_dtype(config)
    torch.manual_seed(config.seed)
    with device:
        model = workload(config.workload).builder()(config).train()
    if config.precision == "bf16_params":
        model = model.to(low)
    call = model if config.compile == "off" else torch.compile(model, mode=config.compile)
    optimizer = _optimizer(config, model, device)
    scaler = torch.amp.GradScaler(device.type, enabled=config.precision == "fp16")
    autocast = torch.autocast(device.type, dtype=low, enabled=config.precision in ("bf16", "fp16"))
    source = open_source(config, 0, 1, device)
    batches = cycle([_copy(next(source)) for _ in range(HELD_BATCHES)])
    source.close()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with autocast:
            loss = call(next(batches))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def _copy(batch: Batch) -> Batch:
    return Images(batch.images.clone(), batch.labels.clone()) if isinstance(batch, Images) else batch.clone()


def _optimizer(config: TrialConfig, model: torch.nn.Module, device: torch.device) -> torch.optim.Optimizer:
    asked, fused = config.optimizer, device.type == "cuda"
    assert asked is not None
    options = {"lr": asked.lr, "weight_decay": asked.weight_decay, "fused": fused}
    if asked.name == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=asked.momentum, **options)
    assert asked.name == "adamw", f"the bare loop knows adamw and sgd, not {asked.name}"
    return torch.optim.AdamW(model.parameters(), **options)


# -- what limits it ----------------------------------------------------------------------------------------------------


def matmul_flops_per_s(device: torch.device, dtype: torch.dtype) -> float:
    """The best rate of square products that this device reaches now, in FLOP/s."""
    return max(_matmul_rate(device, dtype, side) for side in ((4096, 8192) if device.type == "cuda" else (256, 512)))


def _matmul_rate(device: torch.device, dtype: torch.dtype, side: int, repeats: int = 10) -> float:
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    for _ in range(3):
        a @ b
    synchronize(device)
    began = time.perf_counter()
    for _ in range(repeats):
        a @ b
    synchronize(device)
    return 2.0 * side**3 * repeats / (time.perf_counter() - began)


def device_time(step: Callable[[], None], step_s: float) -> Mapping[str, float]:
    """Shares of an unprofiled step in which kernels of each kind run; what lacks to 1 is launches and waiting."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiled:
        for _ in range(PROFILED_STEPS):
            step()
        torch.cuda.synchronize()
    kernels = [
        (event.key, event.self_device_time_total / 1e6)
        for event in profiled.key_averages()
        if event.device_type == DeviceType.CUDA
    ]
    return shares(kernels, step_s * PROFILED_STEPS)


def shares(kernels: Sequence[tuple[str, float]], wall_s: float) -> Mapping[str, float]:
    """Kernel seconds by kind, as shares of the wall time: products, attention, everything else."""
    found = {"matmul": 0.0, "attention": 0.0, "other": 0.0}
    for name, seconds in kernels:
        kind = "attention" if _ATTENTION.search(name) else "matmul" if _MATMUL.search(name) else "other"
        found[kind] += seconds / wall_s
    return found


def limit(busy: Mapping[str, float]) -> str:
    """What a step waits for most: launches, products, or memory traffic."""
    if sum(busy.values()) < 0.9:
        return "launch"
    return "matmul rate" if busy["matmul"] + busy["attention"] > busy["other"] else "memory bandwidth"


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# -- telling -----------------------------------------------------------------------------------------------------------


def kept(one: Measured, device: str) -> bool:
    """Whether raybench is as fast as the bare loop and, on the chip of the reference, near it or better."""
    as_fast = one.raybench >= LEAST_RATIO * one.bare
    return as_fast and ("H200" not in device or one.raybench >= NEAR * REFERENCE[one.name])


def table(measured: Sequence[Measured], device: str) -> Table:
    """One row a point."""
    drawn = Table(
        "point", "raybench samples/s", "bare samples/s", "ratio of medians", "A B B A ratio", "of matmul peak",
        "limited by", "matmul / attention / other", title=f"against a bare loop on {device}", title_justify="left",
        box=SIMPLE_HEAD,
    )  # fmt: skip
    for one in measured:
        shown = one.ratio and f"{one.ratio.estimate:.3f} [{one.ratio.low:.3f}, {one.ratio.high:.3f}]"
        limited = limit(one.busy) if one.busy else "–"
        spent = " / ".join(f"{share:.0%}" for share in one.busy.values()) if one.busy else "–"
        drawn.add_row(
            one.name, f"{one.raybench:,.1f}", f"{one.bare:,.1f}", f"{one.raybench / one.bare:.3f}", shown or "–",
            f"{one.matmul_share:.1%}", limited, spent,
        )  # fmt: skip
    return drawn


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
