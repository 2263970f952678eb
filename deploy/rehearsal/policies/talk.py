"""Owns plain talk: a short, honest answer that quotes what was said."""

from typing import Final

from deploy.rehearsal.loose import Json
from deploy.rehearsal.reply import Reply

BANNER: Final = "*Rehearsal: written by the local stand-in model, which only quotes what its tools returned.*"


def reply(request: Json) -> Reply:
    last = request["messages"][-1]["content"]
    said = last if isinstance(last, str) else " ".join(block.get("text", "") for block in last)
    return Reply(text=f"{BANNER}\n\nYou wrote: “{said[:300].strip()}”")
