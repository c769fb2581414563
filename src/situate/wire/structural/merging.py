"""How patches merge objects of a structural schema: the merge schemas of wire/patching, from its list and map types."""

from __future__ import annotations

from situate.wire.patching.schema import METADATA, Key, MergeSchema
from situate.wire.structural.schema import ABSENT, Structural


def merge_schema_of(schema: Structural) -> MergeSchema:
    """Of a whole object: its metadata is that of every kind."""
    whole = _object(schema)
    return MergeSchema(fields={**(whole.fields or {}), "metadata": METADATA}, others=whole.others)


def _merge(schema: Structural) -> MergeSchema:
    if schema.type == "array" or schema.list_type:
        return _list(schema)
    if schema.map_type == "atomic":
        return MergeSchema("atomic")
    made = _object(schema)
    return MergeSchema(fields={**(made.fields or {}), "metadata": METADATA}) if schema.embedded else made


def _object(schema: Structural) -> MergeSchema:
    fields = {name: _merge(one) for name, one in schema.properties.items()}
    others = None if schema.additional is None else _merge(schema.additional)
    return MergeSchema(fields=fields, others=others)


def _list(schema: Structural) -> MergeSchema:
    if schema.list_type == "set":
        return MergeSchema("set")
    if schema.list_type == "map" and schema.items is not None:
        keys = tuple(_key(schema.items, name) for name in schema.map_keys)
        return MergeSchema("keyed", keys, items=_merge(schema.items))
    return MergeSchema("atomic")


def _key(items: Structural, name: str) -> Key:
    known = items.properties.get(name)
    default = "" if known is None or known.default is ABSENT else known.default
    return Key(name, default, known is None or known.default is ABSENT)
