"""The house rules, kept by reading the sources: who may import what, and what may never be written."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "raybench"

EVERYWHERE = {"errors", "version"}
"""Modules that import nothing of ours, and that every folder may use."""

OURS = {
    "spec": set(),
    "record": set(),
    "measure": {"spec", "record"},
    "workloads": {"spec", "measure"},
    "sources": {"spec"},
    "engine": {"workloads", "sources", "measure", "record", "spec"},
    "results": {"record", "spec"},
    "cluster": {"engine", "results", "workloads", "sources", "measure", "record", "spec"},
    "judge": {"results", "measure", "record", "spec"},
    "report": {"judge", "results", "record"},
}
"""What each folder may import of ours, besides itself: the way of the data, and nothing against it."""

THIRD_PARTY = {
    "spec": {"pydantic", "ruamel"},
    "record": set(),
    "measure": {"numpy", "scipy"},
    "workloads": set(),
    "sources": {"torch", "numpy", "pyarrow", "tokenizers"},
    "engine": {"torch", "numpy", "pynvml", "psutil", "deepspeed"},
    "results": {"pyarrow", "pandas"},
    "cluster": {"ray", "psutil"},
    "judge": {"pandas", "numpy", "scipy"},
    "report": {"pandas", "rich", "plotly", "jinja2"},
}
IN_SINGLE_FILES = {r"workloads/\w+/model\.py": {"torch"}, r"workloads/resnet/zoo\.py": {"torch", "torchvision"},
                   r"sources/encoding\.py": {"PIL"}}
"""Files that may import more than their folder: a workload's torch code is apart, so that `plan` is instant."""
INSIDE_FUNCTIONS = {"cluster": {"torch", "ruamel"}}
"""What a folder needs in some process only: torch in a worker, not in a driver on a machine without it."""

DOORS = {"__init__": set(), "__main__": set(), "api": set(), "cli": {"typer", "rich"}}
"""Modules beside the folders, with their third-party imports. Of ours they may import all, when the command runs."""


@dataclass(frozen=True)
class Import:
    """One import in a source file. `at_top`: it runs when the module is imported. `typing_only`: it never runs."""

    module: str
    line: int
    at_top: bool
    typing_only: bool


@dataclass(frozen=True)
class Source:
    """One file of the package, parsed."""

    path: Path
    tree: ast.Module

    @property
    def name(self) -> str:
        """Dotted, without `raybench.`: `results.load`, `cli`, `` for the package itself."""
        parts = self.path.relative_to(PACKAGE).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)

    @property
    def folder(self) -> str:
        """The folder that owns it, or its own name when it lies beside the folders."""
        return self.name.split(".")[0]

    def imports(self) -> list[Import]:
        """Every import, wherever it stands."""
        return list(_imports(self.tree, at_top=True, typing_only=False))

    def at(self, line: int) -> str:
        """`path:line`, to be clicked."""
        return f"{self.path.relative_to(REPOSITORY)}:{line}"


def _imports(node: ast.AST, at_top: bool, typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_top, typing_only) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            module = child.module or ""
            # `from raybench.results import load` names a module, `from raybench.errors import StoreError` does not.
            for alias in child.names:
                inner = f"{module}.{alias.name}"
                named = inner if is_module(inner) or module == "raybench" else module
                yield Import(named, child.lineno, at_top, typing_only)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from _imports(child, at_top and not inside, typing_only or typing)


def is_module(dotted: str) -> bool:
    """Whether a dotted name is one of our modules or folders."""
    path = REPOSITORY.joinpath(*dotted.split("."))
    return dotted.startswith("raybench") and (path.with_suffix(".py").is_file() or path.is_dir())


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the package."""
    return tuple(Source(path, ast.parse(path.read_text(), str(path))) for path in sorted(PACKAGE.rglob("*.py")))


def ours(module: str) -> str | None:
    """The folder (or module beside the folders) of one of our modules; None for another's.

    None too for `import raybench`: the package itself, of which its path may be asked, imports nothing.
    """
    top, _, rest = module.partition(".")
    return rest.split(".")[0] or None if top == "raybench" else None


def test_every_folder_has_a_rule():
    """A new folder, or a new module beside them, is a decision: it gets its line in the tables above."""
    known = OURS.keys() | EVERYWHERE | DOORS.keys()
    assert {source.folder for source in sources()} <= known
    assert OURS.keys() == THIRD_PARTY.keys()


def test_folders_import_only_what_lies_before_them():
    """Also inside functions and for type checking: a hint is a dependency of the reader."""
    wrong = []
    for source in sources():
        allowed = OURS.get(source.folder, set()) | EVERYWHERE | {source.folder}
        for found in source.imports():
            target = ours(found.module)
            if target is not None and source.folder not in DOORS and target not in allowed:
                wrong.append(f"{source.at(found.line)} {source.folder} may not import {found.module}")
    assert wrong == []


def test_the_table_of_folders_has_no_way_back():
    """If a may import b, b may not import a: otherwise the rules above keep nothing apart."""
    assert [(one, other) for one in OURS for other in OURS[one] if one in OURS[other]] == []


def test_third_party_packages_stay_in_their_folders():
    """torch where it computes, ray where it orchestrates, pandas where results are read. Hints alone import nothing."""
    wrong = []
    for source in sources():
        for found in source.imports():
            top = found.module.split(".")[0]
            allowed = third_party_of(source, found.at_top) | sys.stdlib_module_names | {"raybench"}
            if top not in allowed and not found.typing_only:
                wrong.append(f"{source.at(found.line)} {source.folder} may not import {found.module}")
    assert wrong == []


def third_party_of(source: Source, at_top: bool) -> set[str]:
    """The packages of others that a file may import, at its top or inside its functions."""
    relative = source.path.relative_to(PACKAGE).as_posix()
    allowed = [packages for pattern, packages in IN_SINGLE_FILES.items() if re.fullmatch(pattern, relative)]
    allowed += [table.get(source.folder, set()) for table in (THIRD_PARTY, DOORS)]
    return set().union(*allowed, INSIDE_FUNCTIONS.get(source.folder, set()) if not at_top else set())


def test_the_doors_import_nothing_of_ours_at_the_top():
    """`--help` answers in half a second because a command's code is imported when the command runs."""
    light = EVERYWHERE | {"cli"}
    wrong = [
        f"{source.at(found.line)} imports {found.module} at the top"
        for source in sources()
        if source.folder in DOORS
        for found in source.imports()
        if found.at_top and not found.typing_only and ours(found.module) not in light | {None}
    ]
    assert wrong == []


def test_what_everybody_imports_imports_nothing_of_ours():
    """`errors` and `version` are at the bottom."""
    wrong = [found for source in sources() if source.folder in EVERYWHERE for found in source.imports()]
    assert [found.module for found in wrong if ours(found.module)] == []


def test_no_import_cycles():
    """Imports at the top of modules, those for type checking too, never lead back to where they started."""
    graph = {
        source.name: {found.module.removeprefix("raybench.") for found in source.imports() if found.at_top}
        for source in sources()
        if source.folder not in DOORS
    }
    assert cycle(graph) is None


def cycle(graph: dict[str, set[str]]) -> list[str] | None:
    """A way through the graph that ends where it began; None when there is none."""
    done: set[str] = set()

    def search(node: str, way: list[str]) -> list[str] | None:
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return None
        found = next(filter(None, (search(after, [*way, node]) for after in sorted(graph.get(node, ())))), None)
        done.add(node)
        return found

    return next(filter(None, (search(node, []) for node in sorted(graph))), None)


def test_the_search_for_cycles_finds_one():
    """a -> b -> c -> b has the cycle b c b; without the way back there is none."""
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def test_imports_are_absolute():
    """A file can be read, moved and searched for without knowing where it lies."""
    relative = [
        source.at(node.lineno)
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


NEVER_IMPORTED = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml"}
NEVER_CALLED = {"eval", "exec", "os.system", "os.popen"}


def forbidden(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that would let a file, a sweep or a result run code, with the reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((node.lineno, f"imports {name}") for name in names if name.split(".")[0] in NEVER_IMPORTED)
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, reason) for reason in _forbidden_call(node))


def _forbidden_call(call: ast.Call) -> Iterator[str]:
    called = ast.unparse(call.func)
    options = {option.arg: ast.unparse(option.value) for option in call.keywords}
    if called in NEVER_CALLED:
        yield f"calls {called}"
    if options.get("shell", "False") != "False":
        yield "starts a shell"
    if called == "torch.load" and options.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if options.get("allow_pickle", "False") != "False":
        yield "allows pickles"


def test_nothing_read_is_ever_executed():
    """Sweeps, shards, results and state are data: no eval, no pickle, no shell, in the whole package."""
    wrong = [f"{source.at(line)} {reason}" for source in sources() for line, reason in forbidden(source.tree)]
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "eval(x)", "exec(x)", "import pickle", "from yaml import load", "import os; os.system(x)",
        "subprocess.run(x, shell=True)", "torch.load(x)", "torch.load(x, weights_only=False)",
        "numpy.load(x, allow_pickle=True)",
    ],
)  # fmt: skip
def test_the_search_for_execution_finds_each_form(line: str):
    """The rule would notice what it forbids."""
    assert len(list(forbidden(ast.parse(line)))) == 1


def test_the_search_for_execution_lets_the_ordinary_pass():
    """A model's `eval()` and a plain subprocess are no danger."""
    ordinary = "model.eval()\nsubprocess.run(['x'])\ntorch.load(x, weights_only=True)"
    assert list(forbidden(ast.parse(ordinary))) == []


NEVER_WRITTEN = (
    "RAY_AUTH_MODE=" + "disabled",          # authentication is never turned off, not even in an example
    "ray" + " stop",                        # ends other people's Ray on the same machine
    "--dashboard-host=" + "0.0.0.0",        # opens the Jobs API, which runs any code, to the network
)  # fmt: skip
"""Put together here, so that this file does not hold what it looks for."""


def test_no_file_shows_how_to_open_a_cluster_to_everybody():
    """Examples are copied: none of ours turns authentication off, opens the dashboard or stops others' clusters."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("which files belong to the repository is known only in a clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    wrong = [
        f"{name} holds {text!r}"
        for name in filter(None, listed.stdout.split("\0"))
        if (REPOSITORY / name).is_file()
        for text in NEVER_WRITTEN
        if text in (REPOSITORY / name).read_text(errors="ignore")
    ]
    assert wrong == []
