"""The messages of the protocol as JSON Schema, for children that are written in other languages.

``python -m conformance.harness.schema > spec/schema/protocol.json`` brings the file up to date; a
test holds it to the types.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from conformance.harness.protocol import VERSION, Answered, Ask, Done, Hello, Refused


def protocol_schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) of one line of the protocol."""
    messages, parts = msgspec.json.schema_components(
        [Hello, Refused, Ask, Answered, Done], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:decoder-conformance:schema:protocol",
        "title": f"A message between the kit and a child, version {VERSION} of the protocol",
        "oneOf": list(messages),
        "$defs": dict(sorted(parts.items())),
    }


def text() -> str:
    """The schema as the file has it."""
    return msgspec.json.format(msgspec.json.encode(protocol_schema()), indent=2).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
