"""A command line becomes a syntax tree, or it is said why it cannot: too long, too deep, or no shell's language.

The grammar is tree-sitter's. What it leaves out between two parts of a line must be blank: what it skipped without a
word would be read by a shell.
"""

from __future__ import annotations

import re
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

MOST_CHARS = 20_000
_MOST_DEPTH = 100
_MOST_HEREDOCS = 8
_BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*")
_WORDS = frozenset({"word", "concatenation", "string", "raw_string", "number", "simple_expansion", "expansion", "$"})
_INSIDE = frozenset({"string", "heredoc_redirect", "heredoc_body", "ansi_c_string", "raw_string", "expansion", "regex"})


class Unreadable(Exception):
    """The text is no command line that we can read; the message says why."""


def tree(text: str) -> Node:
    """The root. Raises Unreadable."""
    if len(text) > MOST_CHARS:
        raise Unreadable(f"it is {len(text):,} characters long; at most {MOST_CHARS:,} are read")
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
        if depth > _MOST_DEPTH:
            raise Unreadable("it is nested too deep")
        if node.children and node.type not in _INSIDE:
            _must_be_whole(node, source)
        stack += [(child, depth + 1) for child in node.children]


def _must_be_whole(node: Node, source: bytes) -> None:
    at = node.start_byte
    # A here-document's body stands after the line that asks for it, so the parts of a line may overlap it.
    for child in node.children:
        if child.start_byte > at and not _BLANK.fullmatch(source[at : child.start_byte]):
            raise Unreadable("a part of it was skipped by the parser")
        if child.start_byte == at and node.type == "command" and child.type in _WORDS and at > node.start_byte:
            raise Unreadable("two of its words touch, which a shell reads as one")
        at = max(at, child.end_byte)
    if node.type == "program" and not _BLANK.fullmatch(source[at:]):
        raise Unreadable("its end was skipped by the parser")


def joined(text: str) -> str:
    """With each line that a backslash continues made one line, as a shell does outside quotes and comments."""
    if "\\\n" not in text:
        return text
    made: list[str] = []
    quote, at = "", 0
    while at < len(text):
        char, two = text[at], text[at : at + 2]
        if two == "\\\n" and quote != "'":
            at += 2
            continue
        if char == "\\" and quote != "'" and len(two) == 2:
            made.append(two)
            at += 2
            continue
        if not quote and char == "#" and (at == 0 or text[at - 1] in " \t\n;|&("):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            made.append(text[at:end])
            at = end
            continue
        if char in "'\"":
            quote = "" if quote == char else quote or char
        made.append(char)
        at += 1
    return "".join(made)
