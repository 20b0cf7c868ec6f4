"""A JSON schema's complaints about a value: the part of the standard that data/catalog/schema.json uses. An unknown keyword is an error."""
import re

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
KNOWN = {"$schema", "$defs", "$ref", "title", "type", "required", "additionalProperties", "properties", "items", "minItems", "enum", "pattern", "anyOf"}


def is_kind(value, kind):
    return isinstance(value, KINDS[kind]) and not (kind == "integer" and isinstance(value, bool))


def complaints(value, schema, root, where="file"):
    if unknown := set(schema) - KNOWN:
        raise ValueError(f"keywords that this check does not know: {unknown}")
    if "$ref" in schema:
        return complaints(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    if "anyOf" in schema:
        tries = [complaints(value, each, root, where) for each in schema["anyOf"]]
        return [] if any(not each for each in tries) else min(tries, key=len)
    kinds = schema.get("type", list(KINDS))
    if not any(is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return [f"{where} is no {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is {value!r}, not one of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where} is {value!r}, which {schema['pattern']} does not match")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{where} has too few items")
        for i, each in enumerate(value):
            found += complaints(each, schema.get("items", {}), root, f"{where}[{i}]")
    if isinstance(value, dict):
        found += [f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value]
        rest = schema.get("additionalProperties", {})
        for key, each in value.items():
            if key in schema.get("properties", {}):
                found += complaints(each, schema["properties"][key], root, f"{where}.{key}")
            elif rest is False:
                found.append(f"{where}.{key} is not in the schema")
            else:
                found += complaints(each, rest, root, f"{where}.{key}")
    return found
