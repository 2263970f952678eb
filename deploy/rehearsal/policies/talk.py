"""Owns plain talk: a short, honest answer that quotes what was said."""

from typing import Final

from deploy.rehearsal.policies.lines import short

BANNER: Final = "*Rehearsal: written by the local stand-in model, which only quotes what its tools returned.*"


def reply(asked: str, turns: int, has_tools: bool) -> str:
    """Words back, and what this stand-in can do here."""
    said = f"You wrote: “{short(asked, 300)}”" if asked.strip() else "There was no text to answer."
    nth = f" It is your message number {turns} here." if turns > 1 else ""
    can = (
        "I do not know things; asked for a brief, I look through the workspace with the tools and quote what they show."
        if has_tools
        else "I do not know things, and this request offers no tool that could show me any."
    )
    return f"{BANNER}\n\n{said}{nth}\n\n{can}"
