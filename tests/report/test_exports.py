"""What other tools' scripts find in an export: their keys, in their order, with figures worked by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from raybench.errors import UsageError
from raybench.record.step import Step
from raybench.record.trial import Trial
from raybench.report.exports.export import FORMS, export
from raybench.report.exports.facts import safe
from raybench.report.exports.text import csv_text, markdown_text
from raybench.results.store import RunStore
from raybench.spec.config import Extent, Source
from tests.factories import RUN_ID, make_config, make_node, make_trial

GPU = {"device_kind": "cuda", "gpu_model": "NVIDIA H200", "cuda_version": "12.8", "driver_version": "570.1"}


def a_trial(**columns: Any) -> Trial:
    """10 measured steps of 8 samples, 50 ms each, over a data set of 40 samples: two epochs; 2 steps of warm-up."""
    config = make_config(
        precision="fp16", source=Source(name="shards", num_samples=40, num_shards=2), warmup=Extent(steps=2),
        measure=Extent(steps=10),
    )  # fmt: skip
    memory = {"peak_memory_allocated_bytes": 3 * 2**30, "gpu_utilization_mean": 0.97}
    return make_trial(config, **{**GPU, **memory, "trial_uid": "a" * 32, "node_keys": "k", **columns})


def its_steps(trial: Trial, *, slow_ms: float = 60.0) -> list[Step]:
    """Rank 0 at 50 ms, rank 1 at 50 ms in the first epoch and slower in the second; losses of 9 and 7."""
    return [
        Step(
            trial_uid=trial.trial_uid, rank=rank, step=step, epoch=max(step - 2, 0) // 5, is_warmup=step < 2,
            start_s=0.05 * step, step_ms=slow_ms if rank and step >= 7 else 50.0, host_step_ms=50.0,
            data_wait_ms=0.5, loss=9.0 - 2 * rank,
        )
        for rank in (0, 1)
        for step in range(12)
    ]  # fmt: skip


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """One good trial, an invalid one and one that ran out of memory."""
    run = RunStore(tmp_path / "res", "quick", RUN_ID)
    node = make_node(node_key="k", gpu_count=2, gpu_models="NVIDIA H200;NVIDIA H200", nccl_version="2.27")
    good = a_trial()
    run.commit(good, its_steps(good), nodes=[node])
    run.commit(make_trial(make_config(seed=1), valid=False, invalid_reasons="above_peak"))
    run.commit(make_trial(make_config(seed=2), outcome="oom_cuda"))
    return tmp_path / "res"


def one(paths: list[Path], name: str) -> Path:
    """The only file of that name."""
    (found,) = [path for path in paths if path.name == name]
    return found


def test_bench_json(out: Path, tmp_path: Path) -> None:
    """ED-31 to ED-35: an epoch of 40 samples is 0.25 s at 160/s; rank 1 made the second one 0.3 s."""
    (path,) = export(out, form="bench-json", to=tmp_path / "to")
    assert path.name.startswith("bench_NVIDIA_H200_2gpu_20260301_120000_")
    found = json.loads(path.read_text())
    assert list(found) == ["metadata", "config", "summary", "epochs"]
    assert list(found["metadata"]) == [
        "timestamp", "hostname", "gpu_name", "gpu_count", "cuda_version", "pytorch_version", "python_version",
        "platform",
    ]  # fmt: skip
    assert (found["metadata"]["hostname"], found["metadata"]["gpu_count"]) == ("host-a", 2)
    assert found["config"] == {
        "model_params": 3502592, "d_model": 128, "nhead": 4, "num_encoder_layers": 3, "num_decoder_layers": 3,
        "dim_feedforward": 512, "batch_size_per_gpu": 4, "effective_batch_size": 8, "seq_len": 64,
        "vocab_size": 8192, "num_samples": 40, "dataset_size_gb": 40 * 2 * 64 * 8 / 1e9, "data_source": "disk",
        "num_shards": 2, "amp": True, "num_workers": 0, "warmup_epochs": 0.4, "measured_epochs": 2.0,
    }  # fmt: skip
    assert found["summary"] == {
        "avg_wall_time_per_epoch_s": 0.25, "avg_throughput_samples_per_s": 160.0, "peak_gpu_memory_mb": 3072.0,
        "avg_gpu_utilisation_pct": 97.0,
    }  # fmt: skip
    assert found["epochs"] == [
        {"epoch": 1, "wall_time_s": 0.25, "total_samples": 40, "throughput_samples_per_s": 160.0, "avg_loss": 9.0},
        {"epoch": 2, "wall_time_s": 0.3, "total_samples": 40, "throughput_samples_per_s": 40 / 0.3, "avg_loss": 9.0},
    ]  # fmt: skip


def test_step_csv(out: Path, tmp_path: Path) -> None:
    """FB-19: its ten columns, each above its own figures; 2 % of 50 ms are 1 ms; the same as a Markdown table."""
    paths = export(out, form="step-csv", to=tmp_path / "to")
    header, row = csv.reader(one(paths, "benchmark_results.csv").read_text().splitlines())
    assert header == [
        "model_size", "context_length", "batch_size", "warmup_steps", "measure_steps", "pass_type", "num_params",
        "mean_time_ms", "std_time_ms", "cv_percent",
    ]  # fmt: skip
    assert row == ["3.5m", "64", "4", "2", "10", "train", "3502592", "50.0", "1.0", "2.0"]
    shown = one(paths, "benchmark_results.md").read_text().splitlines()
    assert shown[0] == f"| {' | '.join(header)} |"
    assert shown[2] == "| 3.5m | 64 | 4 | 2 | 10 | train | 3502592 | 50.00 | 1.000 | 2.000 |"


def test_training_metrics(out: Path, tmp_path: Path) -> None:
    """GS-13 to GS-19: 5 steps of 8 x 63 tokens an epoch are 2 520, in 0.25 s 10 080 a second."""
    paths = export(out, form="training-metrics", to=tmp_path / "to")
    found = json.loads(one(paths, "training_metrics.json").read_text())
    assert list(found) == [
        "schema_version", "run_id", "timestamp_utc", "git_commit", "command_line", "env", "host", "hardware",
        "training_config", "deepspeed_config", "schema_notes", "epochs", "summary", "shutdown", "completion",
    ]  # fmt: skip
    assert found["schema_version"] == "2.0"
    assert found["hardware"]["cluster"] == "host-a"
    assert found["hardware"]["gpu_count_visible"] == 2
    assert found["training_config"]["precision"] == "fp16_torch_amp"
    assert found["training_config"]["global_batch_size"] == 8
    assert found["training_config"]["deepspeed_enabled"] is False
    assert found["training_config"]["dataset_subset_sizes"] == {"train": 40, "val": None}
    assert found["epochs"][0] == {
        "epoch_idx": 0, "epoch_wall_time_sec": 0.25, "steps": 5, "micro_steps": 5, "optimizer_steps": 5,
        "tokens_processed_global": 2520, "tokens_per_sec_global": 10080.0, "train_loss_avg_global": 8.0,
        "val_loss_avg_global": None, "max_cuda_mem_allocated_bytes_rank0": None,
        "max_cuda_mem_reserved_bytes_rank0": None, "max_cuda_mem_allocated_bytes_global": 3 * 2**30,
        "max_cuda_mem_reserved_bytes_global": None, "step_time_mean_sec": 0.05, "step_time_p50_sec": 0.05,
        "step_time_p95_sec": 0.05, "dataload_time_mean_sec": 0.0005,
    }  # fmt: skip
    assert found["epochs"][1]["step_time_mean_sec"] == 0.06
    assert found["summary"]["mean_tokens_per_sec_global"] == 10080.0
    marker = one(paths, "RUN_COMPLETE.txt").read_text()
    assert marker.count("\n") == 1
    assert "world_size=2 tokens_per_sec=10080.0 wall_time_sec=" in marker


def test_run_summary(out: Path, tmp_path: Path) -> None:
    """RS-15 to RS-17: an epoch a line, a summary with the throughput it lacked, and columns above their own figures."""
    paths = export(out, form="run-summary", to=tmp_path / "to")
    lines = [json.loads(line) for line in one(paths, "metrics_epoch.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "epoch": 0, "throughput_samples_per_s": 160.0, "epoch_time_s": 0.25, "total_steps": 7, "measured_steps": 5,
        "measured_samples": 40, "mean_step_ms": 50.0, "p50_step_ms": 50.0, "p95_step_ms": 50.0,
    }  # fmt: skip
    assert (lines[1]["total_steps"], lines[1]["p95_step_ms"]) == (5, 60.0)
    summary = json.loads(one(paths, "run_summary.json").read_text())
    assert [summary[name] for name in (
        "experiment_name", "world_size", "precision", "batch_size", "global_batch_size", "effective_batch_size",
        "total_steps", "total_samples", "total_measured_time_s", "throughput_samples_per_s",
    )] == ["quick", 2, "amp", 4, 8, 8, 12, 80, 0.5, 160.0]  # fmt: skip
    assert summary["env"]["nccl_version"] == "2.27"          # a text: a module was once put here, and nothing written
    assert summary["env"]["gpus"] == ["NVIDIA H200", "NVIDIA H200"]
    header, first, _ = csv.reader(one(paths, "summary.csv").read_text().splitlines())
    assert dict(zip(header, first, strict=True))["mean_step_ms"] == "50.0"


@pytest.mark.parametrize("form", FORMS)
def test_invalid_rows_only_when_asked_for(out: Path, tmp_path: Path, form: str) -> None:
    """Those forms have no word for it; without steps there are no epochs. The same rows make the same files."""
    first = export(out, form=form, to=tmp_path / "to")
    texts = [path.read_text() for path in first]
    assert export(out, form=form, to=tmp_path / "to") == first
    assert [path.read_text() for path in first] == texts
    more = export(out, form=form, to=tmp_path / "all", include_invalid=True)
    text = "".join(path.read_text() for path in more)
    assert len(more) == len(first) * (1 if form == "step-csv" else 2)
    assert text.count("\n") > sum(text.count("\n") for text in texts)


def test_what_cannot_be_exported_is_told(tmp_path: Path) -> None:
    """An unknown form, and results without a number."""
    RunStore(tmp_path / "res", "quick", RUN_ID).commit(make_trial(outcome="timeout"))
    with pytest.raises(UsageError, match="as=csv: no such form; there are bench-json, step-csv, training-metrics, run"):
        export(tmp_path / "res", form="csv", to=tmp_path / "to")
    with pytest.raises(UsageError, match="nothing to export: no trial ended ok"):
        export(tmp_path / "res", form="step-csv", to=tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_names_and_cells_from_outside_are_tame(out: Path, tmp_path: Path) -> None:
    """A GPU's name is no path, and a text is no formula; a loss that is no number is null."""
    assert safe("../../etc/NVIDIA H200 <x>") == "etc_NVIDIA_H200_x"
    assert safe("..") == "unnamed"
    assert csv_text(("a", "b"), [{"a": "=cmd()", "b": -1.5}]) == "a,b\n'=cmd(),-1.5\n"
    assert markdown_text(("a",), [{"a": "<b>|x"}]).splitlines()[2] == r"| \<b\>\|x |"
    run = RunStore(tmp_path / "odd", "quick", RUN_ID)
    odd = a_trial(gpu_model="../../x")
    run.commit(odd, [Step(**{**vars(step), "loss": float("inf")}) for step in its_steps(odd)])
    (path,) = export(tmp_path / "odd", form="bench-json", to=tmp_path / "to")
    assert path.parent == tmp_path / "to"
    assert json.loads(path.read_text())["epochs"][0]["avg_loss"] is None
