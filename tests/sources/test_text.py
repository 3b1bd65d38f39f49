"""Text to tokens, with a tokenizer that is made here: nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from raybench.errors import DataError, UsageError
from raybench.sources.prepare import prepare
from raybench.sources.text import prepare_text
from raybench.spec.config import Source
from raybench.spec.families.decoder import DECODER
from tests.factories import make_config
from tests.test_cli import run

WORDS = {"a": 0, "b": 1, "c": 2, "[unknown]": 3}      # and the end of text: 4


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """Whole words, numbered by hand; the end of text is a special token, as GPT-2's."""
    made = Tokenizer(WordLevel(WORDS, unk_token="[unknown]"))
    made.pre_tokenizer = WhitespaceSplit()
    made.add_special_tokens(["<|endoftext|>"])
    made.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Four documents in three files; the empty one is none."""
    folder = tmp_path / "text"
    (folder / "deep").mkdir(parents=True)
    (folder / "2.txt").write_text("c c")
    (folder / "1.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in ("a b", "", "b")))
    (folder / "deep" / "0.txt").write_text("a <|endoftext|> a")
    (folder / "README.md").write_text("b b b")
    return folder


def test_documents_in_order_with_an_end_between(tmp_path: Path, text: Path, tokenizer: str) -> None:
    """a b | b | c c | a, the end's name as a word of the text, a: an end between two, none behind the last."""
    found = prepare_text(text, tokenizer, data_dir=str(tmp_path / "data"))
    assert np.fromfile(found.path, np.uint16).tolist() == [0, 1, 4, 1, 4, 2, 2, 4, 0, 3, 0]
    assert (found.num_tokens, found.vocab_size, found.num_bytes, found.was_there) == (11, 5, 22, False)
    of = make_config(
        workload="decoder", model=DECODER.presets["small"], seq_len=4, vocab_size=5, micro_batch=1, num_workers=1,
        source=Source(name="tokens", num_samples=2, path=str(found.path)),
    )  # fmt: skip
    prepare(of)


def test_once_and_anew_when_anything_differs(tmp_path: Path, text: Path, tokenizer: str) -> None:
    """The same is found again; other text, or another end, is another folder, and the first stays."""
    data = str(tmp_path / "data")
    first = prepare_text(text, tokenizer, data_dir=data)
    assert prepare_text(text, tokenizer, data_dir=data).was_there
    ended = prepare_text(text, tokenizer, end_of_text="c", data_dir=data)
    (text / "2.txt").write_text("c b")
    changed = prepare_text(text, tokenizer, data_dir=data)
    assert len({each.path for each in (first, ended, changed)}) == 3
    first.path.write_bytes(bytes(22))
    (text / "2.txt").write_text("c c")
    with pytest.raises(DataError, match=r"tokens\.bin was altered.*delete the folder"):
        prepare_text(text, tokenizer, data_dir=data)


@pytest.mark.parametrize(("name", "content", "what"), [
    ("9.jsonl", b'{"text": "a"}\n{"words": 1}\n', r'9\.jsonl:2 is not a JSON object with "text"'),
    ("9.jsonl", b"[1]\n", r"9\.jsonl:1 is not a JSON object"),
    ("9.txt", b"\xff\xfe", r"9\.txt is not UTF-8"),
])  # fmt: skip
def test_a_document_that_cannot_be_read(
    tmp_path: Path, text: Path, tokenizer: str, name: str, content: bytes, what: str
) -> None:
    """By file and line; nothing half made is left."""
    (text / name).write_bytes(content)
    with pytest.raises(DataError, match=what):
        prepare_text(text, tokenizer, data_dir=str(tmp_path / "data"))
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file() and path.name != ".lock"]


def test_what_is_asked_wrongly(
    tmp_path: Path, text: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line each, with what to give instead. Offline a name cannot be resolved."""
    monkeypatch.setenv("RAYBENCH_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no \.txt or \.jsonl files"):
        prepare_text(tmp_path / "empty", tokenizer)
    with pytest.raises(UsageError, match="has no token <eos>; give --end-of-text"):
        prepare_text(text, tokenizer, end_of_text="<eos>")
    with pytest.raises(UsageError, match=r"2\.txt is no tokenizer\.json"):
        prepare_text(text, str(text / "2.txt"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match=r"gpt2 is no file here and cannot be downloaded .* give --tokenizer"):
        prepare_text(text, "gpt2")


def test_by_the_command(tmp_path: Path, text: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Says where the tokens are and what a sweep is to say; with what does not go with it, that it does not."""
    monkeypatch.setenv("RAYBENCH_DATA_DIR", str(tmp_path / "data"))
    told = run("data", "prepare", "tokens", "--text", str(text), "--tokenizer", tokenizer).stdout
    (path,) = (tmp_path / "data").glob("text-*/tokens.bin")
    assert f"{path}  11 tokens of 5  prepared" in told
    assert f"vocab_size: 5, source: {{name: tokens, path: {path}}}" in told
    with pytest.raises(UsageError, match="--text is for"):
        run("data", "prepare", "shards", "--text", str(text), "--tokenizer", tokenizer)
