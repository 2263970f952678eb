"""Assignments: alone, before a program, after `export` and kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from shared.gate.shell import words
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN, plain
from shared.gate.shell.scope import Scope

if TYPE_CHECKING:
    from shared.gate.shell.walk import Walk


def name_of(assignment: Node) -> str:
    return (assignment.children[0].text or b"").decode()


def assign(walk: Walk, node: Node, scope: Scope) -> None:
    """Assignments that stand alone, or after `export` and kin."""
    if node.type == "unset_command":
        for child in node.named_children:
            scope.set((child.text or b"").decode(), "")
        return
    found = [node] if node.type == "variable_assignment" else node.named_children
    for child in found:
        if child.type != "variable_assignment":
            words.within(child, walk.substitute(scope))
            scope.exported.add((child.text or b"").decode())
            continue
        name, value = assignment(walk, child, scope)
        if node.type == "declaration_command" and (node.text or b"").startswith((b"export", b"declare -x")):
            scope.exported.add(name)
            walk.reading.invocations.append(Invocation((), ((name, value),), cwd=scope.cwd, via=walk.via))
        elif name in _LASTING:
            walk.reading.invocations.append(Invocation((), ((name, value),), cwd=scope.cwd, via=walk.via))


_LASTING = frozenset({"PATH", "IFS", "PROMPT_COMMAND", "BASH_ENV", "ENV", "PS4", "LD_PRELOAD", "LD_LIBRARY_PATH"})


def assignment(walk: Walk, node: Node, scope: Scope) -> tuple[str, str]:
    """Sets it, and says name and value. `x+=y` goes on with what there is; an element makes the whole unknown."""
    named, value = node.child_by_field_name("name") or node.children[0], node.child_by_field_name("value")
    name = (named.text or b"").decode()
    substitute = walk.substitute(scope)
    appends = any(child.type == "+=" for child in node.children)
    if value is not None and value.type == "array":
        found = [word for child in value.named_children for word in words.fields(child, scope, substitute)]
        before = scope.arrays.get(name, []) if appends else []
        scope.variables.pop(name, None)
        scope.arrays[name] = [plain(word) for word in (*before, *found)]
        return name, " ".join(found)
    text = "" if value is None else words.single(value, scope, substitute)
    if named.type == "subscript":
        name, _, index = name.rstrip("]").partition("[")
        held = scope.arrays.setdefault(name, [])
        if index.isdigit() and int(index) <= len(held) < 64:
            held[int(index) : int(index) + 1] = [plain(text)]
        else:
            scope.arrays[name] = [UNKNOWN]
        return name, UNKNOWN
    if appends:
        before = scope.value(name)
        text = UNKNOWN + text if before is None else before + text
    scope.set(name, plain(text))
    return name, text
