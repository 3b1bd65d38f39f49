"""The cheap part of the doctor, before a sweep's first trial: what the inventory's look at every node already told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raybench.cluster.code_version import source_hash
from raybench.cluster.connect import Choice
from raybench.cluster.findings import of_node
from raybench.cluster.inventory import Inventory
from raybench.errors import ClusterError
from raybench.results.finding import Finding


@dataclass(frozen=True)
class Preflight:
    """What was looked at, in a phrase (empty for a Ray of the run's own: nothing), and what was found."""

    looked_at: str
    findings: tuple[Finding, ...]

    def refuse(self) -> None:
        """Raises ClusterError for any finding, as `--strict` asks."""
        if self.findings:
            count = len(self.findings)
            told = f"the preflight has {count} finding{'s' if count > 1 else ''}, the first: {self.findings[0]}"
            raise ClusterError(f"{told}; --strict takes none")


def preflight(choice: Choice, inventory: Inventory) -> Preflight:
    """What is wrong with a Ray that was joined. The all-reduce and CUDA are the doctor's: they take many seconds."""
    if choice.private:
        return Preflight("", ())
    findings = (*authentication(choice), *node_findings(inventory))
    count = len(inventory.examined)
    where = f"{count} node{'s' if count != 1 else ''}"
    return Preflight(f"{where} (code, clock, disks, shared memory, token, use of GPUs)", findings)


def node_findings(inventory: Inventory) -> Sequence[Finding]:
    """What is wrong with the nodes that the inventory met last."""
    return [finding for each in inventory.examined for finding in of_node(each, own_hash=source_hash())]


def authentication(choice: Choice) -> Iterator[Finding]:
    """Whether the joined Ray asks for a token."""
    if not choice.private and os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        what = "this Ray asks for no token: whoever reaches its ports can run code on it"
        yield Finding("warning", "Ray", what, "start it with RAY_AUTH_MODE=token and a token")
