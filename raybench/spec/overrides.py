"""`--set a.b=c`: the sweep as if its file had said so. Done on the tree, before anything is read into settings.

It changes what `base` says and what an include block says for itself: the given value replaces the block's own value
and its axis. Settings that belong to a workload leave a block of another workload alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from raybench.spec.document import BAD, Node, read_document
from raybench.spec.mistakes import Mistakes, Place, printable
from raybench.spec.settings import SETTINGS, known_key, report_unknown_key
from raybench.spec.sweep import NOT_INHERITED, Head, is_bundle

Override = tuple[str, Node]
_HEAD = dict.fromkeys(Head.model_fields)
_FREE_TEXT = frozenset({"source.data_dir", "source.path"})
"""Settings in which a comma may stand."""
OVERRIDABLE = (*SETTINGS, *_HEAD)
"""The keys that an override may name by themselves; others reach inside one (`model.dropout`)."""


def is_overridable(key: str) -> bool:
    """Whether a sweep has such a key, by itself or inside a setting."""
    return key in _HEAD or known_key(key)


def read_overrides(texts: str | Iterable[str], mistakes: Mistakes) -> list[Override]:
    """Each `key=value`, the value read as YAML is. A text by itself is one of them."""
    found = []
    for text in [texts] if isinstance(texts, str) else texts:
        key, equals, value = text.partition("=")
        key, place = key.strip(), Place(f"--set {text}")
        if not equals or not value:
            mistakes.add(place, "", "must be key=value")
            continue
        node = _read_value(value, place, mistakes)
        if node is None:
            continue
        node = _placed(node, key, place)
        what = _why_not(key, node)
        if what is not None:
            mistakes.add(place, key, what)
        elif is_overridable(key) or is_bundle(node):
            found.append((key, node))
        else:
            report_unknown_key(key, node, {**SETTINGS, **_HEAD}, mistakes)
    return found


def _read_value(value: str, place: Place, mistakes: Mistakes) -> Node | None:
    """The value as YAML has it; a mistake in it has no line, because the text is one."""
    inside = Mistakes()
    node = read_document(value.encode("utf-8", "surrogatepass"), place.file, inside)
    mistakes.extend(replace(mistake, place=place, path="") for mistake in inside)
    return node


def _why_not(key: str, node: Node) -> str | None:
    """What is wrong with an override that is right where it was copied from: a file's section, a shell's list."""
    section, _, inner = key.partition(".")
    if section in ("base", "axes") and (known_key(inner) or inner in _HEAD):
        return f"leave out `{section}.`: {inner}=..."
    if isinstance(node.value, str) and "," in node.value and known_key(key) and key not in _FREE_TEXT:
        return f"a list is written [{printable(node.value)}]"
    return None


def override(root: Node, overrides: Sequence[Override]) -> Node:
    """The tree of the file with the overrides in it, later ones winning."""
    for key, node in overrides:
        if not root.is_mapping:
            return root
        root = _with(root, key, node) if key in _HEAD else _over_all(root, key, node)
    return root


def _placed(node: Node, path: str, place: Place) -> Node:
    """The node and all below it as standing at `--set ...`, named by the key it is for."""
    value = node.value
    if node.is_mapping:
        value = {key: _placed(inner, f"{path}.{key}", place) for key, inner in node.items.items()}
    elif node.is_list:
        value = tuple(_placed(inner, f"{path}[{i}]", place) for i, inner in enumerate(node.elements))
    return Node(value, place, path, place)


def _over_all(root: Node, key: str, node: Node) -> Node:
    if "stages" in root.items:
        return _over_stages(root, key, node)
    base = root.items.get("base")
    told = _over_block(root, root.items.get("base"), key, node)
    include = root.items.get("include")
    if key == "workload" or include is None or not include.is_list:
        return told
    blocks = [
        block if not block.is_mapping or _is_foreign(key, node, block, base) else _over_include(block, key, node)
        for block in include.elements
    ]
    return _with(told, "include", replace(include, value=tuple(blocks)))


def _over_stages(root: Node, key: str, node: Node) -> Node:
    """The stages of a search: a list goes to the stage that has the axis, else to the first; else `base` says it."""
    stages = root.items["stages"]
    if not stages.is_list or not all(stage.is_mapping for stage in stages.elements):
        return root
    own = [i for i, stage in enumerate(stages.elements) if key in _axes_of(stage)]
    here = (*own, 0)[0] if node.is_list else None
    told = [_over_include(stage, key, node if i == here else None) for i, stage in enumerate(stages.elements)]
    root = _with(root, "stages", replace(stages, value=tuple(told)))
    base = root.items.get("base")
    base = base if base is not None and base.is_mapping else Node({}, root.place, "base")
    return root if node.is_list else _with(root, "base", _with(base, key, node))


def _axes_of(block: Node) -> Mapping[str, Node]:
    axes = block.items.get("axes")
    return axes.items if axes is not None and axes.is_mapping else {}


def _over_block(root: Node, base: Node | None, key: str, node: Node) -> Node:
    """`base` and the axes of the file, where the list goes to the axes and anything else to `base`."""
    base = base if base is not None and base.is_mapping else Node({}, root.place, "base")
    axes = _without_axis(root.items.get("axes"), key)
    if node.is_list:
        return _with(_with(root, "axes", _with(axes or Node({}, root.place, "axes"), key, node)), "base", base)
    root = _with(root, "base", _with(base, key, node))
    return _with(root, "axes", axes) if axes is not None else root


def _over_include(block: Node, key: str, node: Node | None) -> Node:
    """An include block or a stage, which takes single values over from `base` but never its axes; without a node it
    says nothing of the key any more."""
    axes = _without_axis(block.items.get("axes"), key)
    block = replace(block, value={name: entry for name, entry in block.items.items() if name != key})
    if node is not None and node.is_list:
        axes = _with(axes or Node({}, block.place, f"{block.path}.axes"), key, node)
    elif node is not None and "." in key:
        block = _with(block, key, node)  # a whole value of the block's own would hide the one inside base's
    return _with(block, "axes", axes) if axes is not None else block


def _is_foreign(key: str, node: Node, block: Node, base: Node | None) -> bool:
    """Whether the setting (or one that moves with it) belongs to the workload of `base` and the block has another."""
    own = block.items.get("workload")
    of_base = base.items.get("workload") if base is not None and base.is_mapping else None
    if own is None or of_base is None or BAD in (own.value, of_base.value):
        return False
    keys = {key} if known_key(key) else {inner for each in node.elements for inner in each.items}
    return own.value != of_base.value and any(each.partition(".")[0] in NOT_INHERITED for each in keys)


def _without_axis(axes: Node | None, key: str) -> Node | None:
    """The axes without the one over `key`, and without `key` in values that move together."""
    if axes is None or not axes.is_mapping:
        return axes
    kept = {name: _without_part(node, key) for name, node in axes.items.items() if name != key}
    return replace(axes, value=kept)


def _without_part(axis: Node, key: str) -> Node:
    if not axis.is_list or not all(each.is_mapping and key in each.items for each in axis.elements):
        return axis
    return replace(axis, value=tuple(_dropping(each.items, each, key) for each in axis.elements))


def _dropping(items: Mapping[str, Node], node: Node, key: str) -> Node:
    return replace(node, value={name: inner for name, inner in items.items() if name != key})


def _with(mapping: Node, key: str, node: Node) -> Node:
    return replace(mapping, value={**mapping.items, key: node})
