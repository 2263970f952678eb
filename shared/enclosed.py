"""Material between a pair of tags that its own text cannot close. Pure."""

from __future__ import annotations

import re

_OPENS = "[<\uff1c\ufe64\u2039\u3008]"
_SLASHES = "[/\uff0f\u2044\u2215]"


def enclosed(tag: str, text: str, **attributes: object) -> str:
    """The text between `<tag …>` and `</tag>`, on lines of their own. Whatever in it looks like that end, in other
    letters or signs too, is made harmless."""
    named = "".join(f' {name}="{value}"' for name, value in attributes.items())
    end = re.compile(rf"{_OPENS}\s*({_SLASHES})\s*(?={re.escape(tag)})", re.IGNORECASE)
    inner = end.sub(r"<\\\1", text).strip()
    return f"<{tag}{named}>\n{inner}\n</{tag}>"
