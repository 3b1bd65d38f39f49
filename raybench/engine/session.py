"""`Session`: everything one rank does with its trials, one after the other, in a process that stays."""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress

import torch

from raybench.engine import deepspeed
from raybench.engine.alone import wait_until_alone
from raybench.engine.attention import switch_attention
from raybench.engine.build import Built, build
from raybench.engine.compiling import cache_state
from raybench.engine.convolutions import cudnn_benchmark, switch_cudnn_benchmark
from raybench.engine.extent import fewest_warm_up_steps, warm_up, window_steps
from raybench.engine.fingerprint import STEPS, Fingerprints
from raybench.engine.memory import (
    baseline,
    device_uuid,
    empty_device,
    is_back,
    peaks,
    restart_device_peak,
    restart_host_peak,
)
from raybench.engine.nvml import Nvml
from raybench.engine.place import Place
from raybench.engine.precision import effective, switch_tf32, unsupported
from raybench.engine.ranks import Ranks
from raybench.engine.reset import ProcessState
from raybench.engine.storage_reads import file_bytes, storage_read_bytes
from raybench.engine.stretch import Stretch, run_stretch
from raybench.engine.telemetry import Telemetry
from raybench.errors import UnsupportedError
from raybench.record.rank import RankEnvironment, RankResult, RankSteps
from raybench.sources.registry import share
from raybench.sources.stream import Stream
from raybench.spec.config import Timing, TrialConfig

__all__ = ["Place", "Session"]


class Session:
    """Runs trials on one rank. With more than one rank the caller has made the process group.

    `clean`: whether the last trial ended well and gave everything back; if not, the process must not serve another.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._device = place.torch_device
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        self._nvml = Nvml.load() if self._device.type == "cuda" else Nvml(None)
        self._telemetry = Telemetry(device_uuid(self._device), self._nvml)
        self._ranks = Ranks(self._device)
        assert self._ranks.grouped or place.world_size == 1, "ranks without a process group"
        # nn.Transformer's fused inference path would make phase `forward` other kernels than training's, in fp32 only.
        torch.backends.mha.set_fastpath_enabled(False)
        self._fingerprints = Fingerprints(place, self._ranks)
        self._state = ProcessState.now()
        _throw_away(self._device, self._ranks)
        empty_device(self._device)
        gc.freeze()          # what lives now lives for good; walking it would cost each collection 60 ms
        self._baseline = baseline(self._device, self._nvml)
        self.clean = True

    def run(self, config: TrialConfig, streams: Sequence[Stream] = ()) -> RankResult:
        """Build, warm up, measure, tear down and check. `streams` are for a source that has its batches from outside.

        Raises:
            UnsupportedError: this device cannot run the config.
            DataError: the source's data is not prepared on this node.
            Exception: whatever workload, torch or driver raised; what can be freed was freed.
        """
        self.clean = False
        try:
            result = self._trial(config, streams)
            result = self._with_fingerprint(config, result)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)      # their locals hold the model
            with suppress(RuntimeError):                     # a poisoned device fails again; the first error is told
                self._tear_down()
            raise
        torn_down_from = time.perf_counter()
        self._tear_down()
        gc.freeze()          # with what the first trial made torch import
        self.clean = is_back(self._baseline, baseline(self._device, self._nvml))
        return dataclasses.replace(result, teardown_s=result.teardown_s + time.perf_counter() - torn_down_from)

    def _with_fingerprint(self, config: TrialConfig, result: RankResult) -> RankResult:
        """Run when everything measured is let go of, in the room it had."""
        ended = time.perf_counter()
        self._tear_down()
        began = time.perf_counter()
        self._switch(config)
        loss = self._fingerprints.of(config)
        return dataclasses.replace(
            result,
            teardown_s=result.teardown_s + began - ended,
            fingerprint_loss=loss,
            fingerprint_steps=None if config.phase in (None, "load") else STEPS,
            fingerprint_s=time.perf_counter() - began,
        )

    def close(self) -> None:
        """End what the session started beside itself."""
        self._telemetry.close()

    def _trial(self, config: TrialConfig, streams: Sequence[Stream]) -> RankResult:
        self._refuse_unsupported(config)
        wait_until_alone(self._nvml, device_uuid(self._device), os.getpid())
        restart_host_peak()
        self._switch(config)
        self._telemetry.start()
        began = time.perf_counter()
        built = build(config, self._place, self._ranks, streams=streams)
        try:
            return self._measure(config, built, build_s=time.perf_counter() - began)
        finally:
            built.work.close()

    def _measure(self, config: TrialConfig, built: Built, build_s: float) -> RankResult:
        run = functools.partial(self._run_stretch, built, config.timing)
        began = time.perf_counter()
        at_least = fewest_warm_up_steps(config.measure)
        warmup = warm_up(run, config.warmup, self._ranks.maximum, at_least=at_least)
        warmup_s = time.perf_counter() - began
        restart_device_peak(self._device)
        warmup_ms = [step_ms for stretch in warmup for step_ms in stretch.step_ms]
        steps = window_steps(config.measure, warmup_ms, self._ranks.maximum)
        fetched = storage_read_bytes()
        window = run(steps)
        fetched = _grown(fetched, storage_read_bytes())
        memory = peaks(self._device)
        telemetry = self._telemetry.between(window.opened_ns, window.closed_ns, window.energy_j)
        ended = time.perf_counter()
        retrieve_s = built.retrieve_s()
        return RankResult(
            rank=self._place.rank,
            world_size=self._place.world_size,
            steps=_steps(config, self._place, warmup, window),
            measured_s=window.seconds,
            measured_steps=len(window.step_ms),
            warmup_steps=len(warmup_ms),
            measured_samples=window.samples,
            measured_tokens=window.tokens,
            optimizer_steps=window.optimizer_steps,
            skipped_optimizer_steps=window.skipped_optimizer_steps,
            parameters=built.parameters,
            first_batch_s=built.first_batch_s,
            build_s=build_s,
            warmup_s=warmup_s,
            teardown_s=time.perf_counter() - ended,
            compile_cache=cache_state(config.compile),
            memory=memory,
            telemetry=telemetry,
            environment=self._environment(config, built),
            create_s=built.create_s,
            retrieve_s=retrieve_s,
            passes=built.passes(),
            file_bytes=file_bytes(config, len(window.step_ms)),
            storage_read_bytes=fetched,
            sample_bytes=built.sample_bytes,
            loader_cpu_s=window.loader_cpu_s,
        )

    def _switch(self, config: TrialConfig) -> None:
        switch_tf32(config.precision)
        switch_cudnn_benchmark(config)
        switch_attention(config.attention)

    def _run_stretch(self, built: Built, timing: Timing, steps: int) -> Stretch:
        return run_stretch(built.work, steps, self._device, self._ranks, self._telemetry.energy_j, timing)

    def _refuse_unsupported(self, config: TrialConfig) -> None:
        cuda = self._device.type == "cuda"
        capability = torch.cuda.get_device_capability(self._device) if cuda else None
        reason = unsupported(config, self._device.type, capability)
        if reason is None and config.strategy == "deepspeed":
            reason = deepspeed.missing()
        if reason is not None:
            raise UnsupportedError(reason)

    def _environment(self, config: TrialConfig, built: Built) -> RankEnvironment:
        cuda = self._device.type == "cuda"
        return RankEnvironment(
            host=self._place.host,
            node_key=self._place.node_key,
            device_kind=self._device.type,
            gpu_model=torch.cuda.get_device_name(self._device) if cuda else None,
            gpu_uuid=device_uuid(self._device),
            cpu_threads=torch.get_num_threads(),
            backend=self._ranks.backend,
            effective_precision="none" if config.phase == "load" else effective(config.precision, self._device.type),
            effective_strategy=built.effective_strategy,
            effective_attention=built.attention(),
            effective_channels_last=built.channels_last,
            effective_cudnn_benchmark=cudnn_benchmark(self._device),
            effective_optimizer=built.effective_optimizer,
            torch_version=str(torch.__version__),
            cuda_version=torch.version.cuda,
            driver_version=self._nvml.driver_version(),
        )

    def _tear_down(self) -> None:
        """Switches first: forgetting compiled graphs lets go of memory."""
        self._state.restore()
        empty_device(self._device)


_PARTS = ("forward_ms", "backward_ms", "optimizer_ms", "compute_ms", "device_gap_ms")


def _steps(config: TrialConfig, place: Place, warmup: list[Stretch], window: Stretch) -> RankSteps:
    """All steps of a trial as columns, warm-up first."""
    stretches = [*warmup, window]
    origin_ns = stretches[0].opened_ns
    starts = [start for stretch in stretches for start in _starts_s(stretch, origin_ns)]
    flags = [stretch is not window for stretch in stretches for _ in stretch.step_ms]
    return RankSteps(
        is_warmup=tuple(flags),
        start_s=tuple(starts),
        step_ms=tuple(value for stretch in stretches for value in stretch.step_ms),
        host_step_ms=tuple(value for stretch in stretches for value in stretch.host_step_ms),
        data_wait_ms=tuple(value for stretch in stretches for value in stretch.data_wait_ms),
        **{name: tuple(value for stretch in stretches for value in getattr(stretch, name)) for name in _PARTS},
        epoch=_epochs(config, place, len(flags)),
        loss=tuple(value for stretch in stretches for value in stretch.loss),
    )


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _starts_s(stretch: Stretch, origin_ns: int) -> list[float]:
    """When each step began, in seconds since `origin_ns`: the stretch's own begin and the steps before."""
    start_s, starts = (stretch.opened_ns - origin_ns) / 1e9, []
    for step_ms in stretch.step_ms:
        starts.append(start_s)
        start_s += step_ms / 1e3
    return starts


def _epochs(config: TrialConfig, place: Place, steps: int) -> tuple[int | None, ...]:
    if config.source is None:
        return (None,) * steps
    part = share(config, place.rank, place.world_size)
    return tuple(part.epoch(step) for step in range(steps))


def _throw_away(device: torch.device, ranks: Ranks) -> None:
    """One product and one collective: what they make once and keep is part of the baseline, not of a trial."""
    square = torch.ones(64, 64, device=device)
    torch.matmul(square, square)
    ranks.barrier()
