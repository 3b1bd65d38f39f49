"""`RunOptions`: what a run was asked for, checked, and the command that would continue it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from raybench.cluster.exit_code import EXPECTED
from raybench.cluster.naming import cluster_name
from raybench.errors import UsageError
from raybench.results.place import Place, place_of
from raybench.results.resume import outcome_set, retry_set
from raybench.spec.names import is_name

_NOTE_LIMIT = 1000


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `raybench run`, as its help describes them."""

    sweep: str
    out: str = "results"
    local: bool = False
    address: str | None = None
    cluster: str | None = None
    overrides: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    quick: bool = False
    no_plugins: bool = False
    fresh: bool = False
    newer_than: datetime | None = None
    retry: str | None = None
    accept: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    wait_for_nodes_s: float = 0.0
    strict: bool = False
    verbose: bool = False

    def place(self) -> Place:
        """Where results go. Raises UsageError for a place that would lose them."""
        if not self.out.strip():
            raise UsageError("--out: give a folder")
        try:
            place = place_of(self.out)
        except UsageError as error:
            raise UsageError(f"--out {error}") from None
        if os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR") and isinstance(place, Path) and not place.is_absolute():
            raise UsageError(
                f"--out {self.out}: inside a Ray job a relative folder is deleted with the job; "
                "give an absolute path or a URI such as s3://BUCKET/PREFIX"
            )
        return place

    def place_text(self) -> str:
        """The same as commands and `load` take it."""
        place = self.place()
        return str(place) if isinstance(place, Path) else self.out

    def accepted(self) -> frozenset[str]:
        """Outcomes that count as expected. Raises UsageError for one that does not exist."""
        return outcome_set(self.accept or "", option="--accept")

    def retried(self) -> frozenset[str]:
        """Outcomes that run again. Raises UsageError for one that does not exist."""
        return retry_set(self.retry or "")

    def done_since(self, now: datetime) -> datetime | None:
        """Only rows started after this count as done; `--fresh` is that with now."""
        return now if self.fresh else self.newer_than

    def checked(self) -> RunOptions:
        """The same, after checks that need nothing but the options. Raises UsageError."""
        if self.local and self.address:
            raise UsageError("--local and --address exclude each other: give one")
        if self.fresh and self.newer_than:
            raise UsageError("--fresh and --newer-than exclude each other: --fresh is --newer-than with now")
        for name in self.tags:
            if not is_name(name):
                raise UsageError(f"--tag {name!r}: a tag's name is a-z, 0-9, `.`, `_`, `-`, at most 64")
        if self.note is not None and len(self.note) > _NOTE_LIMIT:
            raise UsageError(f"--note: {len(self.note)} characters; at most {_NOTE_LIMIT} are kept")
        if not 0 <= self.wait_for_nodes_s < float("inf"):
            raise UsageError(f"--wait-for-nodes {self.wait_for_nodes_s:g}: give seconds, 0 or more")
        if self.cluster is not None:
            cluster_name(self.cluster, head_host="")
        self.place()
        self.accepted()
        self.retried()
        return self

    def continue_command(self, done_since: datetime | None, ended: Collection[str] = ()) -> str:
        """The command that runs what is left of this run, of which every trial has `ended` in one of these outcomes.

        Where none of them would run again by itself, the command asks for those that are no success.
        """
        words: list[str] = ["raybench", "run", self.sweep]
        values: list[tuple[str, Any]] = [
            ("--out", self.out if self.out != "results" else None),
            ("--address", self.address),
            ("--cluster", self.cluster),
            ("--newer-than", done_since and done_since.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
            ("--retry", self._retry_after(ended)),
            ("--accept", self.accept),
            ("--note", self.note),
            ("--wait-for-nodes", f"{self.wait_for_nodes_s:g}" if self.wait_for_nodes_s else None),
        ]
        for name, value in values:
            words += [name, value] if value else []
        for name, many in (("--set", self.overrides), ("--only", self.only)):
            words += [word for value in many for word in (name, value)]
        words += [word for name, value in self.tags.items() for word in ("--tag", f"{name}={value}")]
        flags = (
            ("--local", self.local), ("--quick", self.quick), ("--no-plugins", self.no_plugins),
            ("--strict", self.strict),
        )  # fmt: skip
        words += [flag for flag, on in flags if on]
        return shlex.join(words)

    def _retry_after(self, ended: Collection[str]) -> str | None:
        failed = frozenset(ended) - EXPECTED - self.accepted()
        if failed & self.retried():
            return self.retry
        return ",".join([*([self.retry] if self.retry else []), *sorted(failed)]) or None
