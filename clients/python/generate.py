"""Prints smartfeed_client/_generated.py, the types of the schemas in clients/openapi.json. `make clients` runs it.

A schema with properties becomes a TypedDict, because an answer is then the parsed JSON itself. Any other schema becomes an alias.
"""

import json
import pathlib
import textwrap

HEADER = '''# Generated from clients/openapi.json by generate.py: DO NOT EDIT. `make clients` rewrites it.
"""The types of requests and answers, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union
'''

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Generator:
    """Writes classes. A class of a property is named after its parent."""

    def __init__(self) -> None:
        self.text = HEADER
        self.aliases = ""

    def type_of(self, schema: dict, name: str) -> str:
        """Returns the type of a value. The name is that of the class if it needs one."""
        if "$ref" in schema:
            return schema["$ref"].rsplit("/", 1)[-1]
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        if "enum" in schema:
            return f"Literal[{', '.join(map(json.dumps, schema['enum']))}]"
        if "oneOf" in schema:
            return self.union(self.type_of(one, f"{name}{i}") for i, one in enumerate(schema["oneOf"], 1))
        if isinstance(schema.get("type"), list):
            return self.union(SCALARS[one] for one in schema["type"])
        if schema.get("type") == "array":
            return f"list[{self.type_of(schema['items'], name)}]"
        if schema.get("type") == "object" and "properties" in schema:
            self.typed_dict(name, schema)
            return name
        if schema.get("type") == "object":
            return f"dict[str, {self.type_of(schema.get('additionalProperties', {}), name)}]"
        return SCALARS.get(schema.get("type", ""), "Any")

    @staticmethod
    def union(types) -> str:
        """Returns the union of types: at run time, an operator | needs Python 3.10."""
        return f"Union[{', '.join(dict.fromkeys(types))}]"

    def typed_dict(self, name: str, schema: dict) -> None:
        """Writes a class, and a base for the required keys if there are others: typing.NotRequired needs Python 3.11."""
        keys = {key: self.type_of(value, name + key.title().replace("_", "")) for key, value in schema["properties"].items()}
        required = {key: keys[key] for key in keys if key in schema.get("required", [])}
        optional = {key: keys[key] for key in keys if key not in required}
        doc = schema.get("description", "")
        if optional and required:
            self.one_class(f"_{name}", "TypedDict", "", required)
            self.one_class(name, f"_{name}, total=False", doc, optional)
        else:
            self.one_class(name, "TypedDict, total=False" if optional else "TypedDict", doc, keys)

    def one_class(self, name: str, bases: str, doc: str, keys: dict) -> None:
        lines = textwrap.wrap(f'"""{doc}"""', 116) if doc else []
        lines += [f"{key}: {value}" for key, value in keys.items()]
        self.text += f"\n\nclass {name}({bases}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"

    def schema(self, name: str, schema: dict) -> None:
        if "properties" in schema:
            self.typed_dict(name, schema)
        else:
            self.aliases += f"{name} = {self.type_of(schema, name)}\n"


def new_event(schema: dict) -> dict:
    """Returns the schema of an event for which the publisher can set the id and the time."""
    return {**schema, "required": [key for key in schema["required"] if key not in ("id", "time")]}


def main() -> None:
    document = json.loads((pathlib.Path(__file__).parent.parent / "openapi.json").read_text(encoding="utf-8"))
    schemas = document["components"]["schemas"]
    events = [one["$ref"].rsplit("/", 1)[-1] for one in schemas["Event"]["oneOf"]]
    schemas.update({f"New{name}": new_event(schemas[name]) for name in events})
    schemas["NewEvent"] = {"oneOf": [{"$ref": f"New{name}"} for name in events]}
    generator = Generator()
    for name, schema in schemas.items():
        generator.schema(name, schema)
    print(generator.text + "\n\n" + generator.aliases, end="")


if __name__ == "__main__":
    main()
