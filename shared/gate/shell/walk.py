"""A walk over a command line in the order in which a shell would run it, noting each program it would start.

Nothing is run. Where a shell would decide by what it meets (a test, a file, an answer), every branch is walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from shared.gate.shell import assigning, grammar, start, words
from shared.gate.shell.found import Reading, Redirect
from shared.gate.shell.marks import UNKNOWN, certain, plain
from shared.gate.shell.scope import Scope

MOST_STEPS = 2_000
_MOST_TEXTS = 8
_MOST_ROUNDS = 32
_MOST_FEEDERS = 8


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes in at standard input: `text` where it is known; `by` the programs that it comes from."""

    text: str | None = None
    fed: bool = False
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the findings go, and how we came here: `via` are the programs that started what is walked now."""

    reading: Reading
    via: tuple[str, ...] = ()
    remote: bool = False
    nested: int = 0
    env: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = field(default=())

    def text(self, text: str, scope: Scope, feed: Feed) -> str | None:
        """Walk a text that a shell reads. Returns what it prints, where that is known."""
        if self.nested > _MOST_TEXTS:
            self.reading.unclear("commands are nested too deep in one another")
            return None
        if not certain(text) and text.strip(UNKNOWN + " ") == "":
            self.reading.unclear("a shell would read what is not known")
            return None
        # A mark in a text that is read again is no character: what is unknown there stays one word.
        cleaned = plain(text).replace(UNKNOWN, "${_}").replace("\ue000", "${HOME}")
        try:
            root = grammar.tree(grammar.plain_form(cleaned))
        except grammar.Unreadable as why:
            self.reading.unclear(str(why))
            return None
        scope.set("_", UNKNOWN)
        return replace(self, nested=self.nested + 1).statements(root.children, scope, feed)

    def statements(self, nodes: Sequence[Node], scope: Scope, feed: Feed) -> str | None:
        said: list[str | None] = []
        for node in nodes:
            if not node.is_named or node.type in ("comment", "heredoc_body"):
                continue
            said.append(self.statement(node, scope, feed))
        return None if any(part is None for part in said) else "".join(part for part in said if part is not None)

    def statement(self, node: Node, scope: Scope, feed: Feed) -> str | None:
        self.reading.steps += 1
        if self.reading.steps > MOST_STEPS:
            self.reading.unclear("it does too much to be walked through")
            return None
        match node.type:
            case "command":
                return start.command(self, node, scope, feed)
            case "redirected_statement":
                return start.redirected(self, node, scope, feed)
            case "pipeline":
                return self._pipeline(node, scope, feed)
            case "list":
                return self._list(node, scope, feed)
            case "negated_command" | "program":
                return self.statements(node.children, scope, feed)
            case "subshell":
                return self.statements(node.children, scope.copy(), feed)
            case "compound_statement":
                if node.children and node.children[0].type == "((":
                    self._inside(node, scope)
                    return ""
                return self.statements(node.children, scope, feed)
            case "do_group" | "else_clause":
                return self.statements(node.children, scope, feed)
            case "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command":
                assigning.assign(self, node, scope)
                return ""
            case "test_command":
                self._inside(node, scope)
                return ""
            case "function_definition":
                return self._define(node, scope)
            case "file_redirect":  # `$(<file)` reads it
                words.within(node, self.substitute(scope))
                return None
            case _:
                return self._branching(node, scope, feed)

    def _branching(self, node: Node, scope: Scope, feed: Feed) -> str | None:
        match node.type:
            case "if_statement":
                return self._if(node, scope, feed)
            case "while_statement":
                body = scope.copy()
                for _ in range(2):  # what the first round sets, the second one uses
                    self.statements(node.children, body, feed)
                scope.merge([scope.copy(), body])
                return None
            case "for_statement":
                return self._for(node, scope, feed)
            case "c_style_for_statement":
                self._inside(node, scope)
                body = scope.copy()
                for child in node.children_by_field_name("initializer"):
                    self._unset(child, body)
                for child in node.children:
                    if child.type in ("do_group", "compound_statement"):
                        self.statement(child, body, feed)
                scope.merge([scope.copy(), body])
                return None
            case "case_statement":
                return self._case(node, scope, feed)
            case _:
                self.reading.unclear(f"a part of it is not understood ({node.type.replace('_', ' ')})")
                return None

    # --- what is made of several ------------------------------------------------------------------------------------

    def _pipeline(self, node: Node, scope: Scope, feed: Feed) -> str | None:
        """Each part runs in a shell of its own and is fed by the one before."""
        said: str | None = None
        by: tuple[str, ...] = ()
        for index, part in enumerate(child for child in node.children if child.is_named and child.type != "comment"):
            before = len(self.reading.invocations)
            given = feed if index == 0 else Feed(said, fed=True, by=by)
            said = self.statement(part, scope.copy(), given)
            by = (*given.by, *(one.program for one in self.reading.invocations[before:]))[-_MOST_FEEDERS:]
        return said

    def _list(self, node: Node, scope: Scope, feed: Feed) -> str | None:
        """`a && b` and `a || b`. What `b` sees after `&&` is what `a` left; after both, either was the last."""
        left, operator, right = node.children[0], node.children[1].type, node.children[-1]
        first = self.statement(left, scope, feed)
        after = scope.copy()
        second = self.statement(right, after, feed)
        if operator == "&&" and _sure(left):
            scope.merge([after])
        else:
            scope.merge([scope.copy(), after])
        if operator == "||" or first is None or second is None:
            return None
        return first + second

    def _if(self, node: Node, scope: Scope, feed: Feed) -> None:
        """The condition of each branch runs before it; without an `else` none may be taken."""
        ends = [self._branch(node, scope, feed)]
        others = [child for child in node.children if child.type in ("elif_clause", "else_clause")]
        ends += [self._branch(child, scope, feed) for child in others]
        scope.merge([*ends, scope.copy()])

    def _branch(self, node: Node, scope: Scope, feed: Feed) -> Scope:
        """Its condition, which runs in `scope` itself, and what it guards, in a copy that is returned."""
        words_of = [child for child in node.children if child.type not in ("elif_clause", "else_clause")]
        then = next((at for at, child in enumerate(words_of) if child.type == "then"), 0)
        self.statements(words_of[:then], scope, feed)
        branch = scope.copy()
        self.statements(words_of[then:], branch, feed)
        return branch

    def _for(self, node: Node, scope: Scope, feed: Feed) -> str | None:
        name = (node.child_by_field_name("variable") or node.children[1]).text or b""
        asked = node.children_by_field_name("value")
        values: list[str] = []
        for value in asked:
            values += words.fields(value, scope, self.substitute(scope))
        if not any(child.type == "in" for child in node.children):
            values = list(scope.arguments)
        body = next((child for child in node.children if child.type in ("do_group", "compound_statement")), None)
        if body is None:
            return None
        if len(values) > _MOST_ROUNDS or node.children[0].type == "select":
            values = [UNKNOWN]
        said: list[str | None] = []
        before = scope.copy()
        for value in values:
            scope.set(name.decode(), value)
            said.append(self.statement(body, scope, feed))
        if not any(certain(value) for value in values):  # there may be no round at all
            scope.merge([before, scope.copy()])
        return None if any(part is None for part in said) else "".join(part for part in said if part is not None)

    def _case(self, node: Node, scope: Scope, feed: Feed) -> None:
        ends = [scope.copy()]
        words.within(node.children[1], self.substitute(scope))
        for child in node.children:
            if child.type == "case_item":
                values = set(child.children_by_field_name("value"))
                branch = scope.copy()
                self.statements([c for c in child.children if c not in values], branch, feed)
                ends.append(branch)
        scope.merge(ends)

    def _define(self, node: Node, scope: Scope) -> str:
        """Kept, and read once as if it were called with words that nobody knows: it may be called by another way."""
        named, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if named is not None and body is not None:
            name = (named.text or b"").decode()
            scope.functions[name] = [body]
            scope.unsure.discard(name)
            if _forks(body, name):
                self.reading.doom.append("a function that starts itself again and again (fork bomb)")
            inner = scope.copy()
            inner.arguments, inner.inside = [UNKNOWN], (*scope.inside, name)
            self.statement(body, inner, Feed(None, fed=True))
        return ""

    # --- what stands inside words -----------------------------------------------------------------------------------

    def substitute(self, scope: Scope) -> words.Substitute:
        def read(node: Node) -> str:
            inner = scope.copy()
            before = len(self.reading.invocations)
            said = self.statements(node.children, inner, Feed())
            if node.type == "process_substitution":
                name = f"/dev/fd/{len(scope.files) + 63}"
                scope.write(name, said if (node.text or b"").startswith(b"<") else None)
                return name
            if len(self.reading.invocations) == before and not node.named_children:
                return ""
            return UNKNOWN if said is None else said.rstrip("\n")

        return read

    def _inside(self, node: Node, scope: Scope) -> None:
        words.within(node, self.substitute(scope))
        for child in _below(node, "variable_assignment"):
            self._unset(child, scope)

    def _unset(self, node: Node, scope: Scope) -> None:
        for child in _below(node, "variable_name"):
            scope.set((child.text or b"").decode(), UNKNOWN)


def _below(node: Node, kind: str) -> list[Node]:
    found = [node] if node.type == kind else []
    for child in node.children:
        found += _below(child, kind)
    return found


def _forks(body: Node, name: str) -> bool:
    """Whether it starts itself more than once, or behind its own back."""
    calls = [call for call in _below(body, "command_name") if (call.text or b"").decode() == name]
    piped = [pipe for pipe in _below(body, "pipeline") if any(c in _below(pipe, "command_name") for c in calls)]
    return bool(calls) and (bool(piped) or bool(_below(body, "&")))


def _sure(node: Node) -> bool:
    """Whether it cannot fail: then what follows `&&` is sure to run."""
    return node.type in ("variable_assignment", "variable_assignments", "declaration_command")
