"""A command line becomes a syntax tree, or it is said why it cannot: too long, too deep, or no shell's language.

The grammar is tree-sitter's. What it leaves out between two parts of a line must be blank: what it skipped without a
word would be read by a shell.
"""

from __future__ import annotations

import re
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from shared.gate.options import names

MOST_CHARS = 20_000
_MOST_DEPTH = 100
_MOST_HEREDOCS = 8
_MOST_PIPES = 1_000
_BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*")
_WORDS = names(
    """
    word concatenation string raw_string number simple_expansion expansion command_substitution process_substitution $
    arithmetic_expansion ansi_c_string translated_string brace_expression command_name variable_assignment
    """
)
_ROWS = names("command array for_statement redirected_statement")
_LISTS = names("program compound_statement subshell do_group else_clause elif_clause if_statement command_substitution")
_INSIDE = frozenset({"string", "heredoc_redirect", "heredoc_body", "ansi_c_string", "raw_string", "expansion", "regex"})


class Unreadable(Exception):
    """The text is no command line that we can read; the message says why."""


def tree(text: str) -> Node:
    """The root. Raises Unreadable."""
    if len(text) > MOST_CHARS:
        raise Unreadable(f"it is {len(text):,} characters long; at most {MOST_CHARS:,} are read")
    if text.count("|") > _MOST_PIPES:
        raise Unreadable(f"it holds more than {_MOST_PIPES:,} pipes")
    if text.count("<<") > _MOST_HEREDOCS:
        raise Unreadable(f"it holds more than {_MOST_HEREDOCS} here-documents")
    root = _parser().parse(text.encode()).root_node
    _check(root, text.encode())
    return root


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _check(root: Node, source: bytes) -> None:
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if node.is_error or node.is_missing:
            raise Unreadable("it is not written as a shell reads it, or in a way that is not understood here")
        if not node.children and node.type in ("word", "number", "variable_name") and b"\n" in (node.text or b""):
            raise Unreadable("the parser took the end of a line for a part of a word")
        if depth > _MOST_DEPTH:
            raise Unreadable("it is nested too deep")
        if node.children and node.type not in _INSIDE:
            _must_be_whole(node, source)
        stack += [(child, depth + 1) for child in node.children]


def _must_be_whole(node: Node, source: bytes) -> None:
    """What the parser left out between two parts is blank; two words never touch, and something stands between two
    statements."""
    at = 0 if node.type == "program" else node.start_byte
    before: Node | None = None
    # A here-document's body stands after the line that asks for it, so the parts of a line may overlap it.
    for child in node.children:
        gap = source[at : child.start_byte] if child.start_byte > at else b""
        if not _BLANK.fullmatch(gap):
            raise Unreadable("a part of it was skipped by the parser")
        if before is not None and not gap and before.end_byte == child.start_byte and _one_word(node, before, child):
            raise Unreadable("two of its words touch, which a shell reads as one")
        if before is not None and node.type in _LISTS and b"\n" not in gap and _run_together(before, child):
            raise Unreadable("two of its commands stand together with nothing between them")
        at, before = max(at, child.end_byte), child
    if node.type == "program" and not _BLANK.fullmatch(source[at:]):
        raise Unreadable("its end was skipped by the parser")


def _one_word(node: Node, before: Node, child: Node) -> bool:
    goes_on = before.type in _WORDS or before.type in ("herestring_redirect", "file_redirect")
    return node.type in _ROWS and goes_on and child.type in _WORDS


def _run_together(before: Node, child: Node) -> bool:
    if not before.is_named or not child.is_named or {"comment", "heredoc_body"} & {before.type, child.type}:
        return False
    return not _ends_line(before)


def _ends_line(node: Node) -> bool:
    """A statement with a here-document ends with the line that ends it."""
    return (node.text or b"").endswith(b"\n") or any(child.type == "heredoc_redirect" for child in node.children)


def plain_form(text: str) -> str:
    """The same line without two forms that the grammar misreads: a line that a backslash continues is one line, as a
    shell has it outside single quotes and comments, and what stands in backquotes stands in `$(…)`."""
    made: list[str] = []
    quote, at = "", 0
    while at < len(text):
        char, two = text[at], text[at : at + 2]
        if quote == "'":
            quote = "" if char == "'" else quote
        elif two == "\\\n":
            at += 2
            continue
        elif char == "\\" and len(two) == 2:
            made.append(two)
            at += 2
            continue
        elif char == "`":
            end = _backquote(text, at + 1)
            if end > 0:
                made.append(f"$({plain_form(_unescaped(text[at + 1 : end], quoted=bool(quote)))}\n)")
                at = end + 1
                continue
        elif not quote and char == "#" and (at == 0 or text[at - 1] in " \t\n;|&("):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            made.append(text[at:end])
            at = end
            continue
        elif char in "'\"":
            quote = "" if quote == char else quote or char
        made.append(char)
        at += 1
    return "".join(made)


def _backquote(text: str, at: int) -> int:
    """Where the one that ends it stands; -1 where none does."""
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "`":
            return at
        at += 1
    return -1


def _unescaped(text: str, *, quoted: bool) -> str:
    """In backquotes a backslash protects a backslash, a dollar and a backquote; between double quotes those too."""
    return re.sub(r'\\([\\`$"])' if quoted else r"\\([\\`$])", r"\1", text)
