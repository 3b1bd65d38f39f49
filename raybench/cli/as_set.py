"""`--model.dropout=0.0`, `--precision bf16`: settings of a sweep as options, rewritten to `--set KEY=VALUE`.

Only what is no option of the command is looked at, so that a new setting can never take an option's name away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def settings_as_set(words: Sequence[str], options: Mapping[str, bool]) -> list[str]:
    """The command's words with settings as `--set KEY=VALUE`. `options` tells which of its options take a value.

    Hyphens may stand for underscores. What is neither stays as it is, for the command to refuse.
    """
    return [word for words_of_one in _rewritten(iter(words), options) for word in words_of_one]


def _rewritten(words: Iterator[str], options: Mapping[str, bool]) -> Iterator[Sequence[str]]:
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            yield (word, *words)
        elif options.get(name, False) and not equals:
            yield (word, *_next(words))
        elif name in options or not name.startswith("--") or (key := _setting(name, options)) is None:
            yield (word,)
        elif equals:
            yield ("--set", f"{key}={value}")
        else:
            following = _next(words)
            yield ("--set", f"{key}={following[0]}") if following else (word,)


def _next(words: Iterator[str]) -> tuple[str, ...]:
    following = next(words, None)
    return () if following is None else (following,)


def _setting(option: str, options: Mapping[str, bool]) -> str | None:
    """The setting that `--key` is or, misspelt, is most like; None for what is more like an option."""
    from raybench.spec.mistakes import nearest
    from raybench.spec.overrides import OVERRIDABLE, is_overridable

    key = option.removeprefix("--")
    for written in (key, key.replace("-", "_")):
        if "." in written or is_overridable(written):
            return written
    near = nearest(key, [*OVERRIDABLE, *(name.removeprefix("--") for name in options)])
    return key if near in OVERRIDABLE else None
