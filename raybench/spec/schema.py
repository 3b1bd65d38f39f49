"""The JSON Schema of a sweep file, which editors read: made from the same types that check it."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, Field

from raybench.spec.built_in import BUILT_IN
from raybench.spec.options import KNOWN_OPTIONS
from raybench.spec.settings import AUTO, SETTINGS, TAKES_AUTO, Setting, field_type, strict
from raybench.spec.sweep import Head

DRAFT = "http://json-schema.org/draft-07/schema#"
"""What the YAML plug-ins of editors understand best."""


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft-07) of a sweep file. What depends on the workload is left to the reader's own checks."""
    definitions = {name: _setting(setting) for name, setting in SETTINGS.items()}
    definitions |= {f"{name}.{part}": schema for name in SETTINGS for part, schema in _parts(SETTINGS[name]).items()}
    known = {name: {"$ref": f"#/definitions/{name}"} for name in definitions}
    definitions["axes"] = {
        "type": "object",
        "description": "the product of all of these",
        "properties": {name: _axis(name, schema) for name, schema in known.items()},
        "patternProperties": {r"^model\.": {"type": "array", "minItems": 1}},
        "additionalProperties": _list_of(_mapping(known, "values that move together")),
    }
    axes = {"$ref": "#/definitions/axes"}
    include = _mapping(known | {"axes": axes}, "base, overridden, times its own axes")
    return {
        "$schema": DRAFT,
        "title": "raybench sweep",
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            **{name: _field(Head, name) for name in Head.model_fields},
            "base": _mapping(known, "what all configs have in common"),
            "axes": axes,
            "include": {"type": "array", "items": include},
            "stages": {"type": "array", "minItems": 1, "items": include | {"required": ["axes"]}},
            "exclude": {"type": "array", "items": _mapping(known, "drops what matches all its keys")},
        },
        "definitions": definitions,
    }


def schema_text() -> str:
    """The schema as the shipped file `sweep.schema.json` holds it."""
    return json.dumps(json_schema(), indent=2) + "\n"


def _setting(setting: Setting) -> dict[str, Any]:
    forms: list[dict[str, Any]] = [strict(setting.scalar).json_schema()]
    if setting.name == "model":
        forms[0]["examples"] = [preset for family in BUILT_IN for preset in family.presets]
    if setting.name == "source":
        forms[0]["examples"] = list(KNOWN_OPTIONS["source"])      # a plug-in's name is right, too
    if setting.name in TAKES_AUTO:
        forms.append({"const": AUTO})
    if setting.nullable:
        forms.append({"type": "null"})
    if setting.takes_mapping:
        forms.append(_mapping_of(setting))
    return ({"anyOf": forms} if len(forms) > 1 else forms[0]) | {"description": setting.help}


def _mapping_of(setting: Setting) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": _parts(setting)}
    if setting.one_part:
        schema |= {"minProperties": 1, "maxProperties": 1}
    return schema if setting.shape else schema | {"additionalProperties": False}


def _parts(setting: Setting) -> dict[str, Any]:
    """What a mapping may hold; for a model that of all built-in shapes, since a plug-in's are not known here."""
    if setting.shape:
        return {name: _field(family.shape, name) for family in BUILT_IN for name in family.shape.model_fields}
    if setting.parts is None:
        return {}
    return {name: _field(setting.parts, name) for name in setting.parts.model_fields}


def _field(model: type[BaseModel], name: str) -> dict[str, Any]:
    description = model.model_fields[name].description
    hint = field_type(model, name)
    return strict(Annotated[hint, Field(description=description)] if description else hint).json_schema()


def _mapping(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "patternProperties": {r"^model\.": {}},
        "additionalProperties": False,
    }


def _axis(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    values = _list_of(schema)
    return {"anyOf": [values, {"const": AUTO}]} if name == "num_workers" else values


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": schema}
