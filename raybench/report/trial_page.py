"""Everything about one trial, on one page: what was asked, what ran, what came out, and where the rest lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raybench.judge.meanings import meaning, stability
from raybench.report.columns import Shown, as_text, table
from raybench.report.numbers import count, gib, giga, is_null, percent, seconds, significant, spread, three
from raybench.report.status import names, outcome_style, told_outcome
from raybench.report.text import cell, literal
from raybench.results.configs import config_label, flattened, parsed

Line = tuple[str, str, Callable[[Any], str]]


def _with_unit(unit: str, show: Callable[[Any], str] = significant) -> Callable[[Any], str]:
    return lambda value: f"{show(value)} {unit}"


_SPEED: Final[Sequence[Line]] = (
    ("samples/s", "samples_per_s", significant),
    ("tokens/s", "tokens_per_s", significant),
    ("steps/s", "steps_per_s", significant),
    ("samples/s per worker", "samples_per_s_per_gpu", significant),
    ("tokens/s per worker", "tokens_per_s_per_gpu", significant),
    ("TFLOP/s per worker", "tflops_per_gpu", significant),
    ("MFU", "mfu", _with_unit("%", percent)),
    ("MFU, causal attention", "mfu_causal", _with_unit("%", percent)),
    ("memory bandwidth a worker", "memory_bandwidth_bytes_per_s", _with_unit("GB/s", giga)),
    ("algorithm bandwidth", "algorithm_bandwidth_bytes_per_s", _with_unit("GB/s", giga)),
    ("bus bandwidth", "bus_bandwidth_bytes_per_s", _with_unit("GB/s", giga)),
    ("HFU, recomputation counted", "hfu", _with_unit("%", percent)),
    ("measured for", "measured_s", seconds),
    ("warm-up steps", "warmup_steps", count),
    ("measured steps", "measured_steps", count),
    ("measured samples", "measured_samples", count),
    ("measured tokens", "measured_tokens", count),
)
_WORK: Final[Sequence[Line]] = (
    ("parameters", "parameters", count),
    ("GFLOP a step", "model_flops_per_step", giga),
    ("GFLOP a step, causal", "model_flops_causal_per_step", giga),
    ("GB moved a step", "bytes_per_step", giga),
    ("rows a worker", "rows_per_rank", count),
)
_RAN: Final[Sequence[Line]] = (
    ("device", "device_kind", as_text),
    ("GPU", "gpu_model", as_text),
    ("workers", "world_size", count),
    ("nodes", "num_nodes", count),
    ("CPU threads a worker", "cpu_threads", count),
    ("precision", "effective_precision", as_text),
    ("strategy", "effective_strategy", as_text),
    ("attention", "effective_attention", as_text),
    ("backend", "backend", as_text),
    ("trials before it in its group", "group_trial_index", count),
    ("Ray found by", "ray_address_source", as_text),
    ("torch", "torch_version", as_text),
    ("Ray", "ray_version", as_text),
    ("CUDA", "cuda_version", as_text),
    ("driver", "driver_version", as_text),
    ("raybench", "raybench_version", as_text),
)
_DATA: Final[Sequence[Line]] = (
    ("waited for batches", "data_wait_s", _with_unit("s", three)),
    ("share of the window", "data_stall_fraction", _with_unit("%", percent)),
    ("first batch after", "first_batch_s", _with_unit("s", three)),
    ("samples dropped", "samples_dropped", count),
    ("page cache", "cache_state", as_text),
    ("GB in files", "file_bytes", giga),
    ("GB from storage", "storage_read_bytes", giga),
)
_MEMORY: Final[Sequence[Line]] = (
    ("GPU, allocated", "peak_memory_allocated_bytes", _with_unit("GiB", gib)),
    ("GPU, reserved", "peak_memory_reserved_bytes", _with_unit("GiB", gib)),
    ("host", "peak_host_memory_bytes", _with_unit("GiB", gib)),
    ("GPU utilisation", "gpu_utilization_mean", _with_unit("%", percent)),
    ("power of a GPU", "power_mean_w", _with_unit("W")),
    ("energy of all GPUs", "energy_j", _with_unit("J")),
)
_LEDGER: Final[Sequence[Line]] = (
    ("placement", "placement_s", _with_unit("s", three)),
    ("worker start", "worker_start_s", _with_unit("s", three)),
    ("data preparation", "prepare_s", _with_unit("s", three)),
    ("build", "build_s", _with_unit("s", three)),
    ("of it operands", "create_s", _with_unit("s", three)),
    ("warm-up", "warmup_s", _with_unit("s", three)),
    ("measured", "measured_s", _with_unit("s", three)),
    ("teardown", "teardown_s", _with_unit("s", three)),
    ("of it the result's copy", "retrieve_s", _with_unit("s", three)),
    ("maths fingerprint", "fingerprint_s", _with_unit("s", three)),
    ("hand-off", "handoff_s", _with_unit("s", three)),
    ("all of it", "wall_s", _with_unit("s", three)),
    ("overhead (all but warm-up and measured)", "overhead_s", _with_unit("s", three)),
    ("compile", "compile_s", _with_unit("s", three)),
)
_STEP_COLUMNS: Final = (
    Shown("unit", "unit", align="left"),
    *(Shown(name, name, significant) for name in ("mean", "std", "min", "p50", "p95", "p99", "max")),
)
_NOT_SETTINGS: Final = ("model", "model_name")


def trial_page(row: Mapping[str, Any], traceback: str | None, width: int) -> Group:
    """The page of one row of `load`; `traceback` is the path of its traceback's file, if there is one."""
    config = parsed(str(row["config"]))
    settings = {name: value for name, value in config.items() if name not in _NOT_SETTINGS}
    shape = config.get("model", {})
    parts: list[RenderableType] = [
        _title(row, config),
        *_section("Why it ended so", _error(row, traceback)),
        *_section("What to know", ((name, meaning(name) or "") for name in _named(row))),
        *_section("Speed", _lines(row, _SPEED), after=_interval(row)),
        *_steps(row, width),
        *_section("Work", [*_given(shape), *_lines(row, _WORK)]),
        *_section("Asked", _given(settings)),
        *_section("Ran", _lines(row, _RAN)),
        *_section("Data", _lines(row, _DATA)),
        *_section("Memory and power", [*_lines(row, _MEMORY), *_energy(row)]),
        *_section("Where the time went", _lines(row, _LEDGER)),
        *_section("Identity", _identity(row)),
    ]
    return Group(*parts)


def _title(row: Mapping[str, Any], config: Mapping[str, Any]) -> Text:
    return Text.assemble(
        (literal(config_label(config)), "bold"), "   ", (told_outcome(row), f"bold {outcome_style(row)}")
    )


def _named(row: Mapping[str, Any]) -> list[str]:
    return [*names(row["invalid_reasons"]), *names(row["warnings"])]


def _error(row: Mapping[str, Any], traceback: str | None) -> Iterator[tuple[str, str]]:
    for label, key in (("error", "error_type"), ("on rank", "error_rank"), ("on host", "error_host")):
        if not is_null(row[key]):
            yield label, str(row[key])
    if not is_null(row["error_text"]):
        yield "text", literal(str(row["error_text"]), lines=True)
    if traceback is not None:
        yield "traceback", traceback


def _interval(row: Mapping[str, Any]) -> dict[str, str]:
    reach = spread(row["samples_per_s_ci_low"], row["samples_per_s_ci_high"], row["samples_per_s"])
    return {"samples/s": f"{reach} (95 %)"} if reach else {}


def _steps(row: Mapping[str, Any], width: int) -> Iterator[RenderableType]:
    """Statistics of the slowest rank's measured steps, in milliseconds and in seconds."""
    if is_null(row["step_ms_mean"]):
        return
    in_ms = {column.key: row[f"step_ms_{column.key}"] for column in _STEP_COLUMNS[1:]}
    in_s = {key: None if is_null(value) else value / 1e3 for key, value in in_ms.items()}
    yield from ("", Text("Step time", style="bold cyan"))
    rows = [{"unit": "ms", **in_ms}, {"unit": "s", **in_s}]
    yield Padding(table(_STEP_COLUMNS, rows, width - 2), (0, 0, 0, 2), expand=False)
    cv = row["step_ms_cv"]
    word = "" if is_null(cv) else f": {stability(cv)}"
    yield Padding(Text(f"CV {percent(cv, decimals=2)} %{word}"), (0, 0, 0, 2), expand=False)


def _given(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in flattened(settings) if value is not None]


def _lines(row: Mapping[str, Any], lines: Iterable[Line]) -> list[tuple[str, str]]:
    return [(label, show(row[key])) for label, key, show in lines if not is_null(row[key])]


def _energy(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Energy over the work of the window, where both are known."""
    if is_null(row["energy_j"]):
        return
    for what in ("sample", "token"):
        work = row[f"measured_{what}s"]
        if not is_null(work) and work > 0:
            yield f"energy a {what}", f"{three(row['energy_j'] / work)} J"


def _identity(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    keys = (
        "trial_id", "trial_uid", "attempt", "repeat", "sweep", "sweep_run_id", "cluster", "started_at", "work_key",
        "quality", "tags", "note",
    )  # fmt: skip
    return [(key, str(row[key])) for key in keys if not is_null(row[key])]


def _section(
    title: str, lines: Iterable[tuple[str, str]], after: Mapping[str, str] | None = None
) -> Iterator[RenderableType]:
    """A heading and its lines, or nothing where there are none. `after` puts a word behind a line."""
    shown = list(lines)
    if not shown:
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=24)
    grid.add_column(overflow="fold")
    for label, text in shown:
        behind = f"  {after[label]}" if after and label in after else ""
        grid.add_row(cell(label, "dim"), Text(literal(text, lines=True) + behind))
    yield from ("", Text(title, style="bold cyan"))
    yield Padding(grid, (0, 0, 0, 2), expand=False)
