"""Reading a sweep: what is refused, where the mistake is said to be, and what is never done."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import raybench
from raybench.errors import SweepError, UsageError
from raybench.spec.expand import expand
from raybench.spec.plan import plan
from raybench.spec.reader import find_sweep, read_sweep, shipped_sweeps, sweep_from_bytes

DATA = Path(__file__).parent / "data"
HOSTILE_NAMES = [
    "../x", "..", ".", "", " ", "/etc/x", "/", "a/../../b", "a/b", "a\\b", "C:\\x", "c:x", "\\\\host\\x", "a\x00b",
    "a" * 65, "a" * 300, "a..b", "..a", "a..", "%2e%2e", "%2e%2e%2fx", "~", "~root", "$HOME", "`id`", "$(id)", "a;b",
    "a|b", "a b", "a\nb", "a\tb", "\u202eabc", "a\u200bb", "A", "Quick", "ä", "-rf", "_a", ".hidden", "a\x1b[31m",
    "a\n", "*", "con:", "\ud7ff",
]  # fmt: skip


def mistakes_of(text: str, *overrides: str) -> list[str]:
    """The lines of the SweepError that reading and expanding the text raises."""
    with pytest.raises(SweepError) as caught:
        expand(sweep_from_bytes(text.encode(), "s.yaml", overrides), auto_workers=[1, 2])
    return str(caught.value).splitlines()


def one_of(base: str, rest: str = "") -> str:
    """A sweep of one encdec config with the settings in `base`."""
    return f"name: s\nbase: {{workload: encdec, {base}}}\n{rest}"


def test_all_mistakes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty mistakes of every kind in one file: one line each, in the file's order, none of them a follow-up."""
    monkeypatch.chdir(DATA)
    with pytest.raises(SweepError) as caught:
        read_sweep("mistakes.yaml")
    assert str(caught.value).splitlines() == (DATA / "mistakes.txt").read_text().splitlines()
    assert not any(word in str(caught.value) for word in ("http", "pydantic", "Input should", "type="))


@pytest.mark.parametrize(("base", "line"), [
    ("seq_len: true", "s.yaml:2:35 base.seq_len: must be a whole number, not true"),
    ("seq_len: 64.0", "s.yaml:2:35 base.seq_len: must be a whole number, not 64.0"),
    ('seq_len: "64"', 's.yaml:2:35 base.seq_len: must be a whole number, not "64"'),
    ("seq_len: null", "s.yaml:2:35 base.seq_len: must be a whole number, not null"),
    ("seq_len: [64]", "s.yaml:2:35 base.seq_len: a list of values belongs under axes"),
    ("seq_len: 1", "s.yaml:2:35 base.seq_len: must be at least 2, because the last token is only a target"),
    ("timeout: .inf", "s.yaml:2:35 base.timeout: must be a finite number, not inf"),
    ("timeout: 0", "s.yaml:2:35 base.timeout: must be above 0, not 0"),
    ("model: 53", "s.yaml:2:33 base.model: must be text, not 53"),
    ("model: {nhead: 3}", "s.yaml:2:33 base.model: d_model 128 is not divisible by nhead 3"),
    ("model: {d_model: 1.5}", "s.yaml:2:43 base.model.d_model: must be a whole number, not 1.5"),
    ("model.dropout: 1.0", "s.yaml:2:41 base.model.dropout: must be below 1, not 1.0"),
    ("measure: 0", "s.yaml:2:35 base.measure: must be at least 1, not 0"),
    ("source: [device, shards]", "s.yaml:2:34 base.source: a list of values belongs under axes"),
    ("warmup: five",
     's.yaml:2:34 base.warmup: must be a whole number or a mapping such as {seconds: 10}, not "five"'),
    ("measure: {}", "s.yaml:2:35 base.measure: give exactly one of steps, seconds, samples, tokens, epochs"),
    ("optimizer: {name: adam, momentum: 0.9}", "s.yaml:2:60 base.optimizer.momentum: optimizer adam has no momentum"),
    ("source: {name: generate, data_dir: x}", "s.yaml:2:61 base.source.data_dir: source generate has no data_dir"),
    ("strategy: split", "s.yaml:2:36 base.strategy: encdec runs under ddp, none, fsdp, zero1 or deepspeed, not split"),
    ("num_samples: 5", 's.yaml:2:26 base.num_samples: unknown key; did you mean "source.num_samples"?'),
    ("precision: no", 's.yaml:2:37 base.precision: must be one of fp32, tf32, bf16, fp16, bf16_params, not "no"'),
    ("phase: training",
     's.yaml:2:33 base.phase: must be one of forward, forward_backward, train, load, not "training"'
     '; did you mean "train"?'),
    ("batch_size: 8", 's.yaml:2:26 base.batch_size: unknown key; did you mean "micro_batch" (per worker) or'
     ' "global_batch" (over all workers)?'),
    ("gpus: 2", 's.yaml:2:26 base.gpus: unknown key; did you mean "num_workers"?'),
    ("world-size: 2", 's.yaml:2:26 base.world-size: unknown key; did you mean "num_workers"?'),
    ("amp: true", 's.yaml:2:26 base.amp: unknown key; did you mean "precision"?'),
    ("epochs: 2", 's.yaml:2:26 base.epochs: unknown key; did you mean "measure"?'),
    ("iters: 2", 's.yaml:2:26 base.iters: unknown key; did you mean "measure"?'),
    ("measure: {iters: 2}", 's.yaml:2:36 base.measure.iters: unknown key; did you mean "steps"?'),
    ("d_model: 64", 's.yaml:2:26 base.d_model: unknown key; did you mean "model.d_model"?'),
    ("vocabulary: 64", "s.yaml:2:26 base.vocabulary: unknown key"),   # 2 x 5 / 20 letters: no near word
    ("precision: bfloat16",
     's.yaml:2:37 base.precision: must be one of fp32, tf32, bf16, fp16, bf16_params, not "bfloat16"; '
     'did you mean "bf16"?'),
    ("precision: half",
     's.yaml:2:37 base.precision: must be one of fp32, tf32, bf16, fp16, bf16_params, not "half"; '
     'did you mean "fp16"?'),
    ("device: gpu", 's.yaml:2:34 base.device: must be one of auto, cuda, cpu, not "gpu"; did you mean "cuda"?'),
    ("source: shard",
     's.yaml:2:34 base.source: must be one of device, memory, generate, shards, tokens, cifar100, images, ray_data, '
     'not "shard"; did you mean "shards"?'),
    ("global_batch: 3, num_workers: 2",
     "s.yaml:2:40 base.global_batch: global_batch 3 does not divide by grad_accum 1 x num_workers 2"),
    ("global_batch: 8, micro_batch: 3",
     "s.yaml:2:40 base.global_batch: global_batch 8 does not divide by micro_batch 3 x num_workers 1"),
    ("global_batch: 8, micro_batch: 2, grad_accum: 2",
     "s.yaml:2:40 base.global_batch: global_batch 8 is not micro_batch 2 x grad_accum 2 x num_workers 1"),
    ("micro_batch: 2000000000, num_workers: 2",
     "s.yaml:2:39 base.micro_batch: global_batch must be at most 2147483647, not 4000000000"),
    ("measure: {samples: 100}, global_batch: 64",
     "s.yaml:2:35 base.measure: 100 samples are not a whole number of steps of 64; "
     "measure: 1 leaves the rest out, measure: 2 goes round"),
])  # fmt: skip
def test_one_mistake(base: str, line: str) -> None:
    """Each mistake is told in plain words at the value (or key) that is wrong."""
    assert mistakes_of(one_of(base)) == [line]


@pytest.mark.parametrize(("text", "line"), [
    ("", "s.yaml:1:1: the file is empty"),
    ("- a", "s.yaml:1:1: a sweep is a mapping: name, question, base, axes, ..."),
    ("name: a\n---\nname: b", "s.yaml:2:1: a second document in one file"),
    ("%YAML 1.1\n---\nname: a", "s.yaml:2:1: sweep files are YAML 1.2"),
    ("name: a: b", "s.yaml:1:8: not YAML: check the indent, or quote text that holds `: `"),
    ("base:\n  seed: 1\n model: x", "s.yaml:3:2: not YAML: check the indent, or quote text that holds `: `"),
    ("base:\n\tworkload: encdec", "s.yaml:2:1: not YAML: indent with spaces, not tabs"),
    ("name: @s", "s.yaml:1:7: not YAML: quote text that begins with such a character"),
    ("name: s\nbase\nseed: 1", "s.yaml:3:1: not YAML: a key needs a `:` and a space after it"),
    ("name: 's", "s.yaml:1:9: not YAML: a quote is not closed"),
    ("name: [s", "s.yaml:1:9: not YAML: a bracket is not closed"),
    ("name: a\x07", "s.yaml:1:8: character \\x07 is not allowed"),
    ("name: a\n[1]: 2", "s.yaml:2:1: a key must be a word"),
    ("name: s", "s.yaml:1:1 base.workload: is missing: what should be computed?"),
    ("base: {workload: encdec}", "s.yaml:1:1 name: is missing: a sweep has a name"),
    ("name: s\nworkload: encdec\nbase: {workload: encdec}", "s.yaml:2:1 workload: belongs under base or axes"),
])  # fmt: skip
def test_not_a_sweep(text: str, line: str) -> None:
    """What is no sweep at all is told just as plainly."""
    assert line in mistakes_of(text)


def test_a_misplaced_workload_is_not_missing() -> None:
    """What stands at the top level is told to be misplaced, and nothing else follows from that."""
    assert mistakes_of("name: s\nworkload: encdec\nseq_len: 8\n") == [
        "s.yaml:2:1 workload: belongs under base or axes", "s.yaml:3:1 seq_len: belongs under base or axes",
    ]  # fmt: skip
    assert mistakes_of("name: s\ngpus: 2\nbase: {workload: encdec}\n") == [
        's.yaml:2:1 gpus: unknown key; did you mean "num_workers"?'
    ]


def test_a_list_in_exclude() -> None:
    """There a list of values has no axes to go to."""
    lines = mistakes_of(one_of("seed: 1", "exclude: [{seed: [1, 2]}]\n"))
    assert lines == ["s.yaml:3:18 exclude[0].seed: must be a whole number, not a list"]


def test_too_deep() -> None:
    """The file is level 1 and the first `[`, in column 7, level 2; so level 21 is the 20th, in column 26."""
    (line,) = mistakes_of("name: " + "[" * 100_000)
    assert line.startswith("s.yaml:1:26 name[0]")
    assert line.endswith(": nested deeper than 20 levels")


def test_blames_the_axis_value() -> None:
    """A batch that does not divide at one value of an axis is told there, not in `base`."""
    text = one_of("global_batch: 12", "axes:\n  num_workers: [1, 2, 8]\n")
    line = "s.yaml:4:23 axes.num_workers[2]: global_batch 12 does not divide by grad_accum 1 x num_workers 8"
    assert mistakes_of(text) == [line]


def test_one_line_for_a_setting_swept_twice() -> None:
    """Two axes over one setting are refused."""
    text = one_of("seq_len: 64", "axes:\n  seed: [1, 2]\n  both: [{seed: 3, precision: bf16}]\n")
    assert mistakes_of(text) == ["s.yaml:5:17 axes.both[0].seed: seed is swept by the axis seed already"]


def test_a_matmul_has_no_sequence() -> None:
    """A key that the workload lacks is told once at the key, however many values an axis gives."""
    text = "name: s\nbase: {workload: matmul}\naxes: {seq_len: [1, 2]}\n"
    assert mistakes_of(text) == ["s.yaml:3:8 axes.seq_len: matmul has no seq_len"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep's name cannot leave its folder, nor a terminal's line: refused as text and as an argument."""
    monkeypatch.chdir(tmp_path)
    escaped = "".join(f"\\U{ord(char):08x}" for char in name)
    (line,) = mistakes_of(f'name: "{escaped}"\nbase: {{workload: encdec}}\n')
    assert line.startswith("s.yaml:1:7 name: a name is 1 to 64")
    with pytest.raises(UsageError) as caught:
        find_sweep(f"{name}?")
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_an_alias_bomb_is_cheap() -> None:
    """271 bytes that stand for 43 million leaves are refused in under a second, without building them."""
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join(['*' + old] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    start = time.perf_counter()
    lines = mistakes_of("\n".join(rows))
    assert time.perf_counter() - start < 1.0
    assert sum("anchors (&) and aliases (*) are not allowed" in line for line in lines) > 9


def test_python_tags_do_nothing(tmp_path: Path) -> None:
    """A tag that would run a command is told, and the command is not run."""
    mark = tmp_path / "mark"
    lines = mistakes_of(one_of(f'seed: !!python/object/apply:os.system ["touch {mark}"]'))
    assert lines == ["s.yaml:2:32 base.seed: tags are not allowed: !!python/object/apply:os.system"]
    assert not mark.exists()


def test_too_long_a_file() -> None:
    """Over 256 kB is refused by size, before anything of it is parsed (`%` would be a syntax error)."""
    assert mistakes_of("%" * 256_001) == ["s.yaml:1:1: over 256 kB: a sweep file this long is not read"]


def test_not_text() -> None:
    """A file that is not UTF-8 is told by the offset of its first wrong byte."""
    with pytest.raises(SweepError, match=r"^s.yaml:1:1: byte 6 is not UTF-8 text$"):
        sweep_from_bytes(b"name: \xff", "s.yaml")


def test_many_mistakes_are_cut() -> None:
    """Fifty lines and the number of the others are enough of a file that is wrong everywhere."""
    text = "name: s\nbase:\n  workload: encdec\n" + "".join(f"  xq{i}: 1\n" for i in range(60))
    lines = mistakes_of(text)
    assert len(lines) == 51
    assert lines[-1] == "... and 10 more"


def test_shipped_sweeps_are_found_by_name() -> None:
    """`quick` is shipped."""
    assert find_sweep("quick") == shipped_sweeps()["quick"]


@pytest.mark.parametrize(("asked", "message"), [
    ("qick", 'qick: neither a file nor a shipped sweep; did you mean "quick"? (shipped sweeps: SHIPPED)'),
    ("zebra", "zebra: neither a file nor a shipped sweep; shipped sweeps: SHIPPED"),
    ("no/such.yaml", "no/such.yaml: no such file; shipped sweeps: SHIPPED"),
    ("", "no sweep is named: give a sweep file or the name of a shipped sweep; shipped sweeps: SHIPPED"),
    ("folder", "folder: is a folder; give a sweep file in it"),
    ("/dev/null", "/dev/null: is no plain file; save the sweep as one"),
    ({"name": "s"}, "a sweep is the path of a file or the name of a shipped one, not a dict"),
    (7, "a sweep is the path of a file or the name of a shipped one, not an int"),
])  # fmt: skip
def test_no_such_sweep(asked: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no sweep is told in one line with the cure, in Python too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError) as caught:
        plan(asked)
    assert str(caught.value) == message.replace("SHIPPED", ", ".join(shipped_sweeps()))


def test_shipped_sweeps_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a wheel they lie inside the package; a folder `sweeps` that someone else installed beside it is not ours."""
    (tmp_path / "raybench").mkdir()
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "foreign.yaml").touch()
    monkeypatch.setattr(raybench, "__path__", [str(tmp_path / "raybench")])
    assert shipped_sweeps() == {}
    (tmp_path / "raybench" / "sweeps").mkdir()
    ours = tmp_path / "raybench" / "sweeps" / "ours.yaml"
    ours.touch()
    assert shipped_sweeps() == {"ours": ours}


def test_reading_a_sweep_imports_nothing_heavy() -> None:
    """`plan` starts in a fraction of a second: nothing large is imported."""
    code = "\n".join([
        "import sys",
        "from raybench.spec.plan import plan",
        "assert len(plan('quick').trials) == 16",
        "print([m for m in ('torch', 'ray', 'pandas', 'pyarrow', 'numpy', 'scipy', 'jsonschema') if m in sys.modules])",
    ])
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
