"""`raybench data prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raybench.cli.options import Json, NoPlugins, Overrides, flag

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT", help="A sweep, for all that its trials read; or `shards`, `tokens`, `cifar100`, `images`, ..."
    ),
]

Verify = Annotated[bool, flag("--verify", help="Hash every byte, not only the first and last MB of each file.")]


Text = Annotated[
    Path | None,
    typer.Option("--text", metavar="DIR", help="With `tokens`: make them of the .txt and .jsonl files in a folder."),
]
Tokenizer = Annotated[
    str, typer.Option("--tokenizer", metavar="FILE|NAME", help="Of --text: a tokenizer.json, or a name to download.")
]
EndOfText = Annotated[str, typer.Option("--end-of-text", metavar="TOKEN", help="Of --text: stands between documents.")]
Synthetic = Annotated[bool, flag("--synthetic", help="Random data of the source's own: what is made without --text.")]


def prepare(
    *, what: What, overrides: Overrides, text: Text = None, tokenizer: Tokenizer = "gpt2",
    end_of_text: EndOfText = "<|endoftext|>", synthetic: Synthetic = False, verify: Verify = False,
    no_plugins: NoPlugins = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Make, download or check data on this node, as a run does by itself before a trial that reads it."""
    from raybench.cluster.needs import need

    need("torch")
    if text is not None:
        _from_text(what, text, tokenizer, end_of_text, refused=bool(synthetic or verify or overrides), as_json=as_json)
        return
    from dataclasses import asdict

    from raybench.report.output import print_parts, print_rows
    from raybench.report.preparing import Preparing
    from raybench.report.text import literal
    from raybench.sources.wanted import prepare_all

    nothing = True
    with Preparing() as told:
        for each in prepare_all(what, overrides, no_plugins=no_plugins, all_bytes=verify, told=told):
            nothing = False
            if as_json:
                print_rows([asdict(each) | {"path": str(each.path)}])
                continue
            done = "verified" if verify else "checked" if each.was_there else "prepared"
            print_parts(literal(f"{each.path}  {each.num_bytes / 1e6:,.1f} MB  {done} in {each.seconds:.1f} s"))
    if nothing and not as_json:
        print_parts(literal("nothing to prepare: no trial reads data that is made beforehand"))


def _from_text(what: str, text: Path, tokenizer: str, end_of_text: str, *, refused: bool, as_json: bool) -> None:
    from dataclasses import asdict

    from raybench.errors import UsageError
    from raybench.report.output import print_parts, print_rows
    from raybench.report.preparing import Preparing
    from raybench.report.text import literal
    from raybench.sources.text import prepare_text

    if what != "tokens" or refused:
        raise UsageError("--text is for `raybench data prepare tokens`, without --set, --synthetic and --verify")
    with Preparing() as told:
        found = prepare_text(text, tokenizer, end_of_text=end_of_text, told=lambda *how_far: told(text, *how_far))
    if as_json:
        print_rows([asdict(found) | {"path": str(found.path)}])
        return
    done = "checked" if found.was_there else "prepared"
    print_parts(literal(f"{found.path}  {found.num_tokens:,} tokens of {found.vocab_size:,}  {done}"))
    print_parts(literal(f"in a sweep: vocab_size: {found.vocab_size}, source: {{name: tokens, path: {found.path}}}"))
