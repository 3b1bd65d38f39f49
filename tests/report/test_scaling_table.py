"""Golden tables: what `scaling` prints."""

from __future__ import annotations

from raybench.judge.scaling import scaling_of
from raybench.report.scaling_pivot import pivot_tables
from raybench.report.scaling_table import average_table, below_scaling, scaling_table, scaling_text
from tests.factories import make_config, make_trial
from tests.frames import frame_of
from tests.judge.test_scaling import GT_S, PUBLISHED, V100, matmul, on, published
from tests.report.test_tables import printed

FIXED_WORK = [published(*row) for row in PUBLISHED]
SIX_SHAPES = [matmul(name, gpus, s) for name, both in GT_S.items() for gpus, s in zip((1, 8), both, strict=True)]


def test_the_published_table_at_100_columns() -> None:
    """Both ways to reckon, and the class; tokens per second as published."""
    found = scaling_of(frame_of(*FIXED_WORK))
    assert str(scaling_text(found.table)) == (
        "strong scaling (equal work in all) · speed-up of tokens/s against 1 GPU\n"
    )
    assert printed(scaling_table(found.table, 100), 100) == [
        "work                                    GPUs  tokens/s  speed-up  eff. %  by wall  class",
        "─" * 95,
        "decoder gpt2-seed s512 g16 fp16 device     1    29_600  baseline   100.0        –  –",
        "                                           2    57_289     1.94x    96.8    1.95x  near-perfect",
        "                                           4   100_791     3.41x    85.1    3.44x  good",
    ]
    assert [str(line) for line in below_scaling(found, 100)] == [
        "", "near-perfect: communication costs next to nothing: more GPUs will pay",
        "good: some communication: larger batches or shapes, or fewer synchronisations, bring it closer",
    ]  # fmt: skip


def test_80_columns_keep_what_counts() -> None:
    """Speed-up, efficiency and class; the rest gives way whole."""
    lines = printed(scaling_table(scaling_of(frame_of(*FIXED_WORK)).table, 80), 80)
    assert lines[0].split("  ")[0] == "work"
    assert lines[-1].split()[-4:] == ["4", "3.41x", "85.1", "good"]
    assert max(map(len, lines)) <= 80


def test_averages_are_called_what_they_are() -> None:
    """Six shapes: 5.85, 6.23 and 7.10, each below its name (GT-14)."""
    assert printed(average_table(scaling_of(frame_of(*SIX_SHAPES)).averages, 100), 100) == [
        "shapes    GPUs  geometric mean  arithmetic mean  all the work  least   most",
        "─" * 75,
        "     6  8 vs 1           5.85x            6.23x         7.10x  2.63x  7.75x",
    ]


def test_the_smallest_number_is_named() -> None:
    """GT-X7: from 4 to 8 GPUs is never `vs 1 GPU`; where curves differ each figure says its own."""
    four = [on(n, step_ms=ms, **V100) for n, ms in ((4, 40.0), (8, 25.0))]
    assert str(scaling_text(scaling_of(frame_of(*four)).table)).endswith("against 4 GPUs\n")
    both = scaling_of(frame_of(*four, *(matmul("4096x4096x4096", n, 1 / n) for n in (1, 2)))).table
    assert str(scaling_text(both)).endswith("speed-up of throughput against the smallest number of GPUs\n")
    told = [line.split("GPU")[0].split() for line in printed(scaling_table(both, 120), 120)]
    assert next(" ".join(words) for words in told if "vs" in words).count("1.60x vs 4") == 1


def test_errors_and_warnings_are_told_apart() -> None:
    """What forbids, with the numbers of GPUs it is about, and what only may matter (GS-22)."""
    rows = [
        on(1, changes={"strategy": "none"}), on(2), on(4),
        on(1, changes={"precision": "bf16"}, cpu_threads=2), on(2, changes={"precision": "bf16"}),
        on(8, changes={"precision": "bf16"}, outcome="oom_host"),
    ]  # fmt: skip
    found = scaling_of(frame_of(*rows))
    shown = "\n".join(printed(scaling_table(found.table, 80), 80))
    assert shown.count("invalid comparison") == 2
    assert "oom_host" in shown
    assert [str(line) for line in below_scaling(found, 80)][3:] == [
        "invalid comparison: encdec 3.5m s64 g16 fp32 device, 2 and 4 workers against 1: strategy (none / ddp)", "",
        "warning: encdec 3.5m s64 g16 bf16 device, 2 workers against 1: cpu_threads (2 / 1)",
    ]  # fmt: skip


def test_families_turned() -> None:
    """GT-21: times with the FLOP rate of all GPUs, speed-ups below: 2 x 4096^3 in 234 ms are 0.587 TFLOP/s."""
    shown = list(pivot_tables(scaling_of(frame_of(*SIX_SHAPES)).table, 120))
    assert [str(part).strip() for part in shown[::2]] == ["matmul, square", "matmul, batch"]
    lines = [line.split("  ") for line in printed(shown[1], 120)]       # type: ignore[arg-type]
    (small,) = [index for index, line in enumerate(lines) if "k=4096" in line[0]]
    assert [word.strip() for word in lines[small] if word.strip()][1:] == [
        "234.0 ms (0.587 TFLOP/s)", "89.00 ms (1.54 TFLOP/s)",
    ]  # fmt: skip
    assert [word.strip() for word in lines[small + 1] if word.strip()] == ["speed-up", "baseline", "2.63x"]


def test_workers_without_gpus_are_called_so() -> None:
    """CPU ranks; and a warning without repeats marks the figure at any width."""
    rows = [make_trial(make_config(num_workers=n), warnings="noisy_steps" * (n > 1)) for n in (1, 2)]
    found = scaling_of(frame_of(*rows))
    assert str(scaling_text(found.table)) == (
        "weak scaling (equal work on each worker) · speed-up of tokens/s against 1 worker\n"
    )
    assert "2.00x ⚠" in printed(scaling_table(found.table, 80), 80)[-1]
