"""One program of a line: its words, its redirections, what it starts in turn, and what it changes for what follows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from tree_sitter import Node

from shared.gate.shell import assigning, effects, words, wrap
from shared.gate.shell import feed as feeding
from shared.gate.shell.found import Redirect
from shared.gate.shell.marks import UNKNOWN, certain, plain
from shared.gate.shell.scope import Scope
from shared.gate.shell.wrap import Text, Unclear, Words

if TYPE_CHECKING:
    from shared.gate.shell.walk import Feed, Walk

_MOST_CALLS = 4
_CODE = {
    "python": ("-c",), "python2": ("-c",), "python3": ("-c",), "pypy": ("-c",), "pypy3": ("-c",), "ipython": ("-c",),
    "perl": ("-e", "-E"), "ruby": ("-e",), "node": ("-e", "--eval", "-p", "--print", "-pe"), "nodejs": ("-e", "-p"),
    "deno": ("eval",), "bun": ("-e", "--eval"), "php": ("-r",), "lua": ("-e",), "luajit": ("-e",), "tclsh": (),
    "Rscript": ("-e",), "R": ("-e",), "osascript": ("-e",), "awk": (), "gawk": (), "mawk": (), "nawk": (),
    "groovy": ("-e",), "scala": ("-e",), "elixir": ("-e",), "erl": ("-eval",), "ghc": ("-e",), "runghc": (),
    "julia": ("-e", "-E"), "jshell": (), "guile": ("-c",), "racket": ("-e",), "swipl": ("-g",), "m4": (),
}  # fmt: skip
"""Interpreters, and the options after which code stands."""
_FROM_STDIN = frozenset(_CODE) - {"awk", "gawk", "mawk", "nawk", "m4", "ghc", "R"}


def command(walk: Walk, node: Node, scope: Scope, feed: Feed) -> str | None:
    argv, redirects = list[str](), list[Redirect]()
    substitute = walk.substitute(scope)
    given = [child for child in node.children if child.type == "variable_assignment"]
    for child in node.children:
        if child.type == "file_redirect":
            redirects.append(_redirect(walk, child, scope))
        elif child.type == "herestring_redirect":
            text = plain(words.single(child.children[-1], scope, substitute))
            feed = replace(feed, text=text + "\n", fed=True, by=())
        elif child.type not in ("comment", "variable_assignment"):
            argv += words.fields(child, scope, substitute)
    before = {name: scope.variables.get(name) for name in map(assigning.name_of, given)}
    env = [assigning.assignment(walk, child, scope) for child in given]
    walk = replace(walk, env=(*walk.env, *env), redirects=(*walk.redirects, *redirects))
    feed = _fed(redirects, scope, feed)
    if not argv:
        effects.note(walk, (), scope, feed, "")
        return ""
    said = run(walk, tuple(argv), scope, feed)
    for name, value in before.items():  # they were for this program alone
        scope.variables.pop(name, None)
        if value is not None:
            scope.variables[name] = value
    return said


def redirected(walk: Walk, node: Node, scope: Scope, feed: Feed) -> str | None:
    """A statement and where its input and output go. The body of a here-document is what it is fed."""
    redirects = list[Redirect]()
    body: Node | None = None
    after: list[Node] = []
    for child in node.children:
        if child.type == "file_redirect":
            redirects.append(_redirect(walk, child, scope))
        elif child.type == "herestring_redirect":
            text = plain(words.single(child.children[-1], scope, walk.substitute(scope)))
            feed = replace(feed, text=text + "\n", fed=True, by=())
        elif child.type == "heredoc_redirect":
            feed = replace(feed, text=_heredoc(walk, child, scope), fed=True, by=())
            redirects += [_redirect(walk, inner, scope) for inner in child.children if inner.type == "file_redirect"]
            after += [
                c for c in child.children if c.is_named and not c.type.startswith(("heredoc", "file_", "comment"))
            ]
        elif child.is_named:
            body = child
    walk = replace(walk, redirects=(*walk.redirects, *redirects))
    feed = _fed(redirects, scope, feed)
    if body is None:
        effects.note(walk, (), scope, feed, feed.text if feed.fed else "")
        return feed.text if feed.fed else ""
    said = walk.statement(body, scope, feed)
    return _behind(walk, after, scope, said) if after else said


def _behind(walk: Walk, after: Sequence[Node], scope: Scope, said: str | None) -> str | None:
    """What stands on the line after `<<EOF`: a pipe into another program, or one that follows."""
    from shared.gate.shell.walk import Feed  # noqa: PLC0415 - the walk and its steps know each other

    plain_walk = replace(walk, redirects=())
    feed = Feed(said, fed=True, by=(walk.reading.invocations[-1].program,) if walk.reading.invocations else ())
    for node in after:
        parts = node.named_children if node.type == "pipeline" and not _whole(node) else [node]
        for part in parts:
            said = plain_walk.statement(part, scope.copy(), feed)
            feed = Feed(said, fed=True, by=feed.by)
    return said


def _whole(node: Node) -> bool:
    return bool(node.children) and node.children[0].type not in ("|", "|&")


def run(walk: Walk, argv: tuple[str, ...], scope: Scope, feed: Feed, *, more: bool = False) -> str | None:
    """A program with its words: noted, and whatever it starts after it. Returns what it prints, where known."""
    name = argv[0]
    if name in scope.functions and name not in ("command", "builtin"):
        before = scope.copy()
        said = _called(walk, name, argv, scope, feed)
        if name not in scope.unsure:
            return said
        scope.merge([before, scope.copy()])
    known = walk.reading
    if not name.strip(UNKNOWN):
        known.unclear("which program would run is not known")
        if len(argv) > 1:  # an empty value is no word: then the next one is the program
            run(walk, argv[1:], scope, feed, more=more)
    said = None if more else feeding.printed(argv, feed.text if feed.fed else None, scope)
    effects.note(walk, argv, scope, feed, said, more=more)
    effects.changes(argv, scope, feed)
    bare = name.rpartition("/")[2]
    if bare in ("source", ".") and len(argv) > 1:
        _file(walk, argv[1], scope, feed, argv[2:])
    inner = replace(walk, via=(*walk.via, bare), redirects=())
    for one in wrap.started(argv):
        match one:
            case Unclear(why):
                known.unclear(why)
            case Text(text, arguments, here, remote, called):
                seen = scope if here else scope.handed_down(walk.env)
                seen.arguments = seen.arguments if here else list(arguments)
                if called is not None:
                    seen.set("0", called)
                said = replace(inner, remote=walk.remote or remote).text(text, seen, feed)
            case Words(inner_argv, added, env, from_stdin, remote):
                at = replace(inner, remote=walk.remote or remote, env=(*walk.env, *env))
                extra, unknown = _from_stdin(feed, added, from_stdin)
                said = run(at, (*inner_argv, *extra), scope, feed, more=more or unknown)
            case _:
                assert_never(one)
    if wrap.is_shell(bare) and more:
        known.unclear("a shell would be given words that are not known")
    if wrap.is_shell(bare) and not any(isinstance(one, Text) for one in wrap.started(argv)):
        return _script(inner, argv, scope, feed)
    if bare == "ssh" and feed.text is not None and not any(isinstance(one, Text) for one in wrap.started(argv)):
        return replace(inner, remote=True).text(feed.text, Scope(), replace(feed, text=None))
    _interpreted(walk, argv, feed)
    if "/" in name and effects.path_of(name) in scope.files:
        return _file(inner, name, scope, feed, argv[1:])
    return said


def _from_stdin(feed: Feed, added: bool, from_stdin: bool) -> tuple[tuple[str, ...], bool]:
    """Words that come in at standard input, where they are known."""
    if not from_stdin:
        return (), added
    if feed.fed and feed.text is not None and certain(feed.text):
        return tuple(feed.text.split()), False
    return (), True


def _called(walk: Walk, name: str, argv: Sequence[str], scope: Scope, feed: Feed) -> str | None:
    if scope.inside.count(name) >= _MOST_CALLS:
        walk.reading.unclear(f"the function {name} calls itself")
        return None
    inner = scope.copy()
    inner.arguments, inner.inside = list(argv[1:]), (*scope.inside, name)
    said = None
    for body in scope.functions[name]:
        said = walk.statement(body, inner, feed)
    scope.variables.update(inner.variables)
    scope.files.update(inner.files)
    scope.cwd = inner.cwd
    return said


def _script(walk: Walk, argv: Sequence[str], scope: Scope, feed: Feed) -> str | None:
    """A shell that reads a file or its standard input."""
    operands = [word for word in argv[1:] if not word.startswith(("-", "+"))]
    reads_stdin = not operands or any(re.fullmatch(r"-\w*s\w*", word) for word in argv[1:])
    if not reads_stdin:
        return _file(walk, operands[0], scope, feed, operands[1:])
    if feed.fed and feed.text is not None:
        return walk.text(feed.text, scope.handed_down(walk.env), replace(feed, text=None))
    if feed.fed:
        by = f" from {feed.by[-1]}" if feed.by else ""
        walk.reading.unclear(f"a shell would run what comes{by}, which is not known")
    return None


def _file(walk: Walk, name: str, scope: Scope, feed: Feed, arguments: Sequence[str]) -> str | None:
    """A script that this line itself has written, or of which only the name is known."""
    texts = scope.files.get(effects.path_of(name))
    if texts is None and name == "/dev/stdin" and feed.fed:
        texts = [feed.text]
    if texts is not None:
        said = None
        for text in texts:
            if text is None:
                walk.reading.unclear(f"a script would run whose content is not known ({plain(name)})")
                continue
            inner = scope.handed_down(walk.env)
            inner.arguments = list(arguments)
            said = walk.text(text, inner, feed)
        return said
    if not certain(name):
        walk.reading.unclear("which script would run is not known")
    elif name.startswith(("/dev/fd", "/dev/stdin", "/proc/")):
        walk.reading.unclear("a shell would run what comes from a descriptor")
    return None


def _interpreted(walk: Walk, argv: Sequence[str], feed: Feed) -> None:
    name = re.sub(r"(?<=[a-z])[\d.]+$", "", argv[0].rpartition("/")[2]) or argv[0]
    options = _CODE.get(argv[0].rpartition("/")[2], _CODE.get(name))
    if options is None:
        return
    code = [text for option, text in itertools.pairwise(argv) if _takes_code(option, options)]
    code += [
        word[len(o) :] for word in argv[1:] for o in options if len(o) == 2 and word.startswith(o) and len(word) > 2
    ]
    if name in ("awk", "gawk", "mawk", "nawk"):
        code = [word for word in argv[1:] if not word.startswith("-")][:1]
    operands = [word for word in argv[1:] if not word.startswith("-") or word == "-"]
    if not code and name in _FROM_STDIN and feed.fed and (not operands or operands[0] == "-"):
        code = [UNKNOWN if feed.text is None else feed.text]
    walk.reading.code.extend((name, text) for text in code)


def _takes_code(option: str, options: Sequence[str]) -> bool:
    """`-c`, and `-c` at the end of letters that stand together, as in `perl -ne`."""
    if option in options:
        return True
    short = [o[1] for o in options if len(o) == 2]
    return bool(re.fullmatch(r"-[A-Za-z0-9]+", option)) and option[-1] in short


def _fed(redirects: Sequence[Redirect], scope: Scope, feed: Feed) -> Feed:
    for redirect in redirects:
        if redirect.operator in ("<", "<&") and not redirect.target.isdigit():
            feed = replace(
                feed, text=scope.content(effects.path_of(redirect.target)), fed=True, by=(plain(redirect.target),)
            )
    return feed


def _redirect(walk: Walk, node: Node, scope: Scope) -> Redirect:
    operator = next(((c.text or b"").decode() for c in node.children if not c.is_named), ">")
    target = node.child_by_field_name("destination")
    if target is None:
        return Redirect(operator, "-")
    return Redirect(operator, words.single(target, scope, walk.substitute(scope)))


def _heredoc(walk: Walk, node: Node, scope: Scope) -> str | None:
    """The text, from its first line to the mark that ends it. Unquoted, a shell still puts values into it."""
    opening = next((c for c in node.children if c.type == "heredoc_start"), None)
    body = next((c for c in node.children if c.type == "heredoc_body"), None)
    if opening is None or body is None:
        return ""
    words.within(body, walk.substitute(scope))
    quoted = bool(re.search(rb"['\"\\]", opening.text or b""))
    text = _lines(node, opening)
    if text is None:
        walk.reading.unclear("several here-documents stand on one line")
        return None
    if node.children[0].type == "<<-":
        text = re.sub(r"(?m)^\t+", "", text)
    return text if quoted else _filled(text, scope)


def _lines(node: Node, opening: Node) -> str | None:
    """From the line after the one that asks for it; the parser's own node leaves parts of the text out."""
    root = node
    while root.parent is not None:
        root = root.parent
    source, offset = root.text or b"", root.start_byte
    ends = next((c for c in node.children if c.type == "heredoc_end"), node.children[-1])
    line = source.find(b"\n", opening.end_byte - offset)
    if b"<<" in source[opening.end_byte - offset : line]:
        return None
    return source[line + 1 : ends.start_byte - offset].decode() if ends.type == "heredoc_end" else None


def _filled(text: str, scope: Scope) -> str:
    def by_name(found: re.Match[str]) -> str:
        value = scope.value(found[1] or found[2])
        return UNKNOWN if value is None else value

    parts = re.split(r"(\$\([^()]*\)|`[^`]*`)", text)
    made = [
        UNKNOWN if index % 2 else re.sub(r"(?<!\\)\$(?:(\w+)|\{(\w+)\})", by_name, part)
        for index, part in enumerate(parts)
    ]
    return re.sub(r"\\([$`\\])", r"\1", "".join(made))
