"""Settings as options of `run` and `plan`."""

import pytest
from typer.testing import CliRunner

from raybench.cli import app
from raybench.cli.as_set import settings_as_set

OPTIONS = {"--set": True, "--out": True, "--note": True, "--retry": True, "--quick": False, "--local": False}


@pytest.mark.parametrize(("words", "rewritten"), [
    ("quick --precision=bf16", "quick --set precision=bf16"),
    ("quick --precision bf16", "quick --set precision=bf16"),
    ("--model.dropout=0.1 quick --repeats 3", "--set model.dropout=0.1 quick --set repeats=3"),
    ("--num_workers=[1,2] --seq-len 128", "--set num_workers=[1,2] --set seq_len=128"),
    ("--set a=b --out=x --quick --local", "--set a=b --out=x --quick --local"),
    ("--note --seed=1 quick", "--note --seed=1 quick"),              # the note's text, however odd
    ("--precison=bf16", "--set precison=bf16"),                      # the sweep says what was meant
    ("--modle.dropout=1", "--set modle.dropout=1"),
    ("--retri=timeout", "--retri=timeout"),                          # the command says what was meant
    ("--seed", "--seed"),
    ("-- --seed=1", "-- --seed=1"),
])  # fmt: skip
def test_words(words: str, rewritten: str) -> None:
    """Both forms, hyphens, values of other options, slips, and what is left alone."""
    assert settings_as_set(words.split(), OPTIONS) == rewritten.split()


def told(*words: str) -> tuple[int, str]:
    """Exit code and output of a command, or the error it ended with."""
    ended = CliRunner().invoke(app, list(words), env={"COLUMNS": "160"})
    return ended.exit_code, ended.output + (str(ended.exception) if ended.exception else "")


def test_it_is_typed_as_the_file_is_and_slips_are_told() -> None:
    """The same checks as `--set`: types by the schema, unknown keys with what was probably meant."""
    code, out = told("plan", "quick", "--precision=bf16", "--num_workers", "1", "--seed=3")
    assert code == 0, out
    assert "fp32" not in out
    assert '--set seed=three: must be a whole number, not "three"' in told("plan", "quick", "--seed=three")[1]
    assert 'unknown key; did you mean "precision"?' in told("plan", "quick", "--precison=bf16")[1]
    assert told("plan", "quick", "--quik")[0] == 2
