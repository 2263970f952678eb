"""The reference page: the OpenAPI document as one HTML page without scripts or foreign assets, for use offline."""

from __future__ import annotations

from html import escape
from typing import Any

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #ccc}code,pre{font:14px/1.4 ui-monospace,monospace}
.m{display:inline-block;min-width:4.5rem;font-weight:600}
details{margin:.4rem 0;padding:.3rem .6rem;border:1px solid #ddd}
summary{cursor:pointer}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem .2rem 0;
vertical-align:top;border-bottom:1px solid #eee}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}details,h2,td,th{border-color:#444}a{color:#8ab4f8}}
"""


def page(document: dict[str, Any]) -> str:
    """The whole page."""
    info = document["info"]
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(_operation(method, path, operation))
    parts = [f"<h2>{escape(tag)}</h2>{''.join(found)}" for tag, found in groups.items()]
    schemas = "".join(_schema(name, one) for name, one in sorted(document["components"]["schemas"].items()))
    title = escape(f"{info['title']} {info['version']}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>'
        f"<p>{escape(info.get('description', ''))}</p><p>Send <code>Authorization: Bearer TOKEN</code>. The document "
        f'itself: <a href="/openapi.json">/openapi.json</a>.</p>{"".join(parts)}<h2>bodies</h2>{schemas}</body></html>'
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        (one["name"], one["in"], _type(one.get("schema", {})), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    bodies = operation.get("requestBody", {}).get("content", {}).values()
    rows.extend(("body", "body", _type(media.get("schema", {})), "") for media in bodies)
    for status, answer in operation["responses"].items():
        types = [_type(media.get("schema", {})) or kind for kind, media in answer.get("content", {}).items()]
        rows.append((status, "answer", ", ".join(types), answer.get("description", "")))
    return (
        f'<details><summary><span class="m">{method.upper()}</span><code>{escape(path)}</code></summary>'
        f"<p>{escape(operation.get('description', operation.get('summary', '')))}</p>{_table(rows)}</details>"
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", []))
    rows = [
        (field, "required" if field in required else "", _type(one), one.get("description", ""))
        for field, one in schema.get("properties", {}).items()
    ]
    head = f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
    return f"{head}<p>{escape(schema.get('description', ''))}</p>{_table(rows)}</details>"


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{cells}</table>" if rows else ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    for key in ("anyOf", "allOf", "oneOf"):
        if key in schema:
            return " | ".join(_type(one) for one in schema[key])
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    return str(schema.get("const") or schema.get("format") or schema.get("type") or "")
