"""A command line as text becomes what it would start (`Reading`). Nothing is run, nothing outside is looked at."""

from __future__ import annotations

from shared.gate.shell import grammar
from shared.gate.shell.found import Reading
from shared.gate.shell.marks import why_unreadable
from shared.gate.shell.scope import Scope
from shared.gate.shell.walk import Feed, Walk


def read(command: str) -> Reading:
    """What bash would start for this line, as far as it follows from the line; never raises."""
    reading = Reading()
    hidden = why_unreadable(command)
    if hidden is not None:
        reading.unclear(hidden)
        return reading
    for text in dict.fromkeys((grammar.plain_form(command), grammar.plain_form(command.replace("\\\n", "")))):
        try:
            root = grammar.tree(text)
        except grammar.Unreadable as why:
            reading.unclear(str(why))
            continue
        try:
            Walk(reading).statements(root.children, Scope(), Feed())
        except RecursionError:
            reading.unclear("it is nested too deep")
    return reading
