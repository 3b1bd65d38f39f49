"""`SweepSpec`: a sweep file as values, each remembering where it was written, before anything is multiplied out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from raybench.spec.config import Isolation
from raybench.spec.criteria import Criterion, read_exclusion
from raybench.spec.document import BAD, Node
from raybench.spec.family import SPECIFIC
from raybench.spec.mistakes import Mistakes, Place
from raybench.spec.names import NAME_PATTERN, NAME_RULE, is_name
from raybench.spec.plain_words import problems
from raybench.spec.settings import AUTO, SETTINGS, Given, Layer, known_key, read_layer, read_setting, report_unknown_key
from raybench.spec.shapes import Frozen

Order = Literal["planned", "shuffled"]
Scaling = Literal["strong", "weak"]
Maximize = Literal[
    "samples_per_s", "tokens_per_s", "samples_per_s_per_gpu", "tokens_per_s_per_gpu", "steps_per_s", "tflops_per_gpu"
]
PARTS = (
    "name", "question", "base", "axes", "include", "exclude", "repeats", "order", "isolation", "scaling",
    "skip_larger_after_oom", "stages", "maximize",
)  # fmt: skip
NOT_INHERITED = frozenset({*SPECIFIC, "model", "strategy"})
"""What a block that names another workload does not take over from `base`."""


class Head(Frozen):
    """What a sweep says of itself as a whole."""

    name: Annotated[str, Field(description="what its results are filed under", pattern=NAME_PATTERN)]
    question: Annotated[str, Field(description="what it answers")] = ""
    repeats: Annotated[int, Field(ge=1, le=99, description="how often each config is run")] = 1
    order: Annotated[Order, Field(description="within a repeat and worker group")] = "planned"
    isolation: Annotated[Isolation, Field(description="how long worker processes live")] = "repeat"
    scaling: Scaling | None = Field(None, description="which work is equal on any number of workers; else refused")
    skip_larger_after_oom: bool = Field(False, description="skip what needs more memory than what ran out of it")
    maximize: Annotated[Maximize, Field(description="the column by which a stage's best is chosen")] = "samples_per_s"


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis: its values are layers, one setting each, or several that move together."""

    name: str
    options: tuple[Layer, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """One product: the layers that hold for all its configs, weakest first, times its axes."""

    node: Node
    fixed: tuple[Layer, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True, eq=False)
class SweepSpec:
    """A sweep as written. `expand` turns it into trials. `places` tells where each of its parts stands.

    Where there are `stages`, `blocks` holds the first: the others go on from what is found.
    """

    head: Head
    file: str
    blocks: tuple[Block, ...]
    exclude: tuple[Criterion, ...]
    places: Mapping[str, Place]
    no_plugins: bool = False      # it may name built-in workloads only
    stages: tuple[Block, ...] = ()

    @property
    def name(self) -> str:
        """What its results are filed under."""
        return self.head.name

    @property
    def uses_auto(self) -> bool:
        """Whether a `num_workers: auto` waits for the cluster to be known."""
        blocks = (*self.blocks, *self.stages)
        layers = [layer for block in blocks for layer in block.fixed]
        layers += [option for block in blocks for axis in block.axes for option in axis.options]
        return any("num_workers" in layer and layer["num_workers"].value == AUTO for layer in layers)

    def stage(self, number: int, chosen: Sequence[Layer]) -> SweepSpec:
        """The sweep of one stage, from 0, that goes on from the settings `chosen` before it, weakest first."""
        block = self.stages[number]
        base, *own = block.fixed
        return replace(self, blocks=(replace(block, fixed=(base, *chosen, *own)),), stages=())

    def all_stages(self) -> SweepSpec:
        """All stages as one product: whatever a stage may come to run is in it."""
        first, *_ = self.stages
        axes: list[Axis] = []
        for block in self.stages:
            axes += [*(Axis("", (own,)) for own in block.fixed[1:]), *block.axes]
        return replace(self, blocks=(Block(first.node, first.fixed[:1], tuple(axes)),), stages=())


def sweep_from(root: Node, mistakes: Mistakes) -> SweepSpec | None:
    """The sweep in a document. What cannot be used is among the mistakes; None where nothing can be."""
    if not root.is_mapping:
        mistakes.add(root.place, root.path, "a sweep is a mapping: name, question, base, axes, ...")
        return None
    for key, node in root.items.items():
        if key not in PARTS:
            _misplaced(key, node, mistakes)
    base_node = root.items.get("base", Node({}, root.place, "base"))
    base = _base(base_node, mistakes)
    if "workload" in root.items:  # told as misplaced, so it is not missing
        base = {"workload": Given(BAD, root.items["workload"]), **base}
    blocks = []
    axes = _axes(root.items.get("axes"), mistakes)
    includes = _list(root.items.get("include"), "blocks", mistakes)
    if "workload" in base or axes or not includes:
        blocks.append(Block(base_node, (base,), axes))
    blocks += [_include(node, base, mistakes) for node in includes if _mapping(node, mistakes)]
    stages = _stages(root, base, mistakes)
    blocks = [*stages[:1]] or blocks
    exclude = [read_exclusion(node, mistakes) for node in _list(root.items.get("exclude"), "mappings", mistakes)]
    head = _head(root, mistakes)
    rules = tuple(rule for rule in exclude if rule is not None)
    places = {part: node.place for part, node in root.items.items()}
    return SweepSpec(head, root.place.file, tuple(blocks), rules, places, stages=stages)


def _base(node: Node, mistakes: Mistakes) -> Layer:
    """The settings of `base`; where it is wrong as a whole, nothing more is said about what follows from it."""
    if _mapping(node, mistakes) is None:
        return {"workload": Given(BAD, node)}
    return read_layer(node.items, mistakes)


def _misplaced(key: str, node: Node, mistakes: Mistakes) -> None:
    if known_key(key):
        mistakes.add(node.key or node.place, node.path, "belongs under base or axes")
    else:
        report_unknown_key(key, node, dict.fromkeys(PARTS), mistakes)


def _head(root: Node, mistakes: Mistakes) -> Head:
    """The head with what is right of it; what is wrong is reported and replaced by its default."""
    given = {field: root.items[field] for field in Head.model_fields if field in root.items}
    values = {field: node.plain for field, node in given.items() if node.value is not BAD}
    if "name" not in given:
        mistakes.add(root.place, "name", "is missing: a sweep has a name")
    elif isinstance(name := values.get("name"), str) and not is_name(name):
        mistakes.add(given["name"].place, "name", NAME_RULE)
        del values["name"]
    try:
        return Head.model_validate({"name": "unnamed"} | values)
    except ValidationError as error:
        for (field, *_), what in problems(error):
            mistakes.add(given[field].place, field, what)
            values.pop(field, None)
    return Head.model_validate({"name": "unnamed"} | values)


def _include(node: Node, base: Layer, mistakes: Mistakes) -> Block:
    own = read_layer({key: entry for key, entry in node.items.items() if key != "axes"}, mistakes)
    if names_other_workload(own, base):
        base = {key: given for key, given in base.items() if key.partition(".")[0] not in NOT_INHERITED}
    return Block(node, (base, own), _axes(node.items.get("axes"), mistakes))


def _stages(root: Node, base: Layer, mistakes: Mistakes) -> tuple[Block, ...]:
    """The stages of a search, one after the other; what they cannot go together with is told."""
    nodes = _list(root.items.get("stages"), "blocks with axes", mistakes)
    if not nodes:
        if "maximize" in root.items:
            mistakes.add(root.items["maximize"].key or root.place, "maximize", "is for stages, and there are none")
        return ()
    for part in ("axes", "include"):
        if part in root.items:
            mistakes.add(root.items[part].key or root.place, part, "cannot stand beside stages: put the axes in them")
    for node in (node for node in nodes if _mapping(node, mistakes)):
        if "axes" not in node.items:
            mistakes.add(node.place, f"{node.path}.axes", "is missing: what should the stage try?")
        if "workload" in node.items:
            mistakes.add(node.items["workload"].place, f"{node.path}.workload", "belongs under base: stages share it")
    return tuple(_include(node, base, mistakes) for node in nodes if node.is_mapping)


def names_other_workload(own: Mapping[str, Given], base: Mapping[str, Given]) -> bool:
    """Whether an include block computes something else than `base`."""
    return "workload" in own and "workload" in base and own["workload"].value != base["workload"].value


def _axes(node: Node | None, mistakes: Mistakes) -> tuple[Axis, ...]:
    if _mapping(node, mistakes) is None:
        return ()
    assert node is not None
    axes = [_axis(name, values, mistakes) for name, values in node.items.items()]
    found = tuple(axis for axis in axes if axis is not None)
    _swept_once(found, mistakes)
    return found


def _axis(name: str, node: Node, mistakes: Mistakes) -> Axis | None:
    """An axis; None where it cannot be used. A wrong axis of a setting stays, as one bad value."""
    if not known_key(name) and not is_bundle(node):
        report_unknown_key(name, node, SETTINGS, mistakes)
        return None
    if name == "num_workers" and node.value == AUTO:
        return Axis(name, ({name: Given(AUTO, node, swept=True)},))
    if not node.is_list or not node.elements:
        if node.value is not BAD:
            what = "is an axis without values" if node.is_list else "must be a list of values"
            mistakes.add(node.place, node.path, what)
        return Axis(name, ({name: Given(BAD, node, swept=True)},))
    if known_key(name):
        return Axis(name, tuple({name: read_setting(name, each, mistakes, swept=True)} for each in node.elements))
    return Axis(name, tuple(read_layer(each.items, mistakes, swept=True) for each in node.elements))


def is_bundle(node: Node) -> bool:
    """Whether these are values that move together: mappings, under a name of the writer's choice."""
    return node.is_list and bool(node.elements) and all(element.is_mapping for element in node.elements)


def _swept_once(axes: Iterable[Axis], mistakes: Mistakes) -> None:
    """Two axes over one setting would silently undo each other."""
    owner: dict[str, str] = {}
    for axis in axes:
        for option in axis.options:
            for key, given in option.items():
                if owner.setdefault(key, axis.name) != axis.name:
                    mistakes.add(given.node.place, given.node.path, f"{key} is swept by the axis {owner[key]} already")


def _mapping(node: Node | None, mistakes: Mistakes) -> Node | None:
    if node is None or node.value is BAD or node.is_mapping:
        return node if node is not None and node.is_mapping else None
    mistakes.add(node.place, node.path, "must be a mapping")
    return None


def _list(node: Node | None, of: str, mistakes: Mistakes) -> tuple[Node, ...]:
    if node is None or node.value is BAD or node.is_list:
        return node.elements if node is not None and node.is_list else ()
    mistakes.add(node.place, node.path, f"must be a list of {of}")
    return ()
