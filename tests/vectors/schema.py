"""The part of JSON Schema that vectors.schema.json uses."""

from __future__ import annotations

import re
from typing import Any, Iterator

TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "null": type(None)}
KNOWN = {"$schema", "$defs", "title", "description", "type", "additionalProperties", "required", "properties", "const",
         "items", "$ref", "anyOf", "minimum", "maximum", "pattern", "enum"}  # fmt: skip


def is_of(value: Any, name: str) -> bool:
    if name in ("boolean", "integer"):
        return type(value) is {"boolean": bool, "integer": int}[name]
    return isinstance(value, TYPES[name])


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> Iterator[str]:
    """What is against the schema."""
    if set(schema) - KNOWN:
        yield f"{at}: the schema has {sorted(set(schema) - KNOWN)}, which is not known here"
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    names = schema.get("type", [])
    if names and not any(is_of(value, name) for name in ([names] if isinstance(names, str) else names)):
        yield f"{at}: {value!r} is not {names}"
        return
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        yield f"{at}: {value!r} is not {schema['const']}"
    if value not in schema.get("enum", [value]):
        yield f"{at}: {value!r} is not one of {schema['enum']}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r} does not match {schema['pattern']}"
    if type(value) is int and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at}: {value} must be text"
    if "anyOf" in schema and all(any(faults(value, one, root, at)) for one in schema["anyOf"]):
        yield f"{at}: {str(value)[:80]} is none of {len(schema['anyOf'])} forms"
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from faults(item, schema["items"], root, f"{at}[{number}]")
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from (f"{at} lacks {key}" for key in schema.get("required", []) if key not in value)
        for key, item in value.items():
            if key not in properties and more is False:
                yield f"{at} has {key}"
            else:
                yield from faults(item, properties.get(key, more), root, f"{at}.{key}")
