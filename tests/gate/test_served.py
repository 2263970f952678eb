"""A tool server's tool: asked about unless it is allowed, and never around the floor, the lists and what steers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared import mcp
from shared.gate.asking import Served, judge
from shared.gate.policy import Identity, Mode, Policy
from shared.mcp import McpServer
from tests.gate.lines import PLAIN, WHO

TOOL = "mcp_files_write"
GRANTED = replace(PLAIN, granted=frozenset({f"tool:{TOOL}"}))
EVERYTHING = replace(GRANTED, isolated=True, patterns_off=True, allowed=("rm", "echo"))
HARMLESS: dict[str, Any] = {"path": "notes.txt", "content": "an ordinary text, with some words in it"}


def of(arguments: dict[str, Any], policy: Policy = PLAIN, *, allowed: bool = False) -> tuple[str, str]:
    said = judge(Served(TOOL, arguments, allowed), WHO, policy)
    return str(said.decision), said.rule


def test_without_a_word_of_anybody_a_person_is_asked_and_may_allow_the_tool() -> None:
    said = judge(Served(TOOL, HARMLESS), WHO, PLAIN)
    assert (said.decision, said.rule, said.patterns) == ("ask", "served", (f"tool:{TOOL}",))
    assert of(HARMLESS, GRANTED) == ("allow", "granted")
    assert of(HARMLESS, allowed=True) == ("allow", "served.allowed")
    assert of({}, GRANTED) == ("allow", "granted")


@pytest.mark.parametrize(
    "policy",
    [
        replace(PLAIN, isolated=True), replace(PLAIN, patterns_off=True), replace(PLAIN, allowed=(TOOL, "*")),
        replace(PLAIN, granted=frozenset({"tool:mcp_files_read", "delete.recursive"})),
    ],
    ids=["wall", "bypass", "allow list", "another grant"],
)  # fmt: skip
def test_nothing_else_stands_in_for_that_word(policy: Policy) -> None:
    assert of(HARMLESS, policy) == ("ask", "served")


HARD: dict[str, tuple[dict[str, Any], str, str]] = {
    "the floor": ({"note": "rm -rf /"}, "refuse", "floor.delete"),
    "the floor, deep within": ({"a": [{"b": ["x", "sudo rm -rf /*"]}]}, "refuse", "floor.delete"),
    "the floor, as the name of a field": ({"rm -rf /": 1}, "refuse", "floor.delete"),
    "the floor, hidden": (
        {"command": 'bash -c "$(echo cm0gLXJmIC8= | base64 -d)"; rm -rf /'},
        "refuse",
        "floor.delete",
    ),
    "a password": ({"command": "echo x | sudo -S id"}, "refuse", "sudo.password"),
    "the services own": ({"path": "/srv/nightshift.toml"}, "refuse", "own.configuration"),
    "what steers": ({"path": "AGENTS.md"}, "ask_person", "steering.file"),
    "what steers, far away": ({"path": "/home/x/repo/.git/hooks/pre-commit"}, "ask_person", "steering.file"),
    "what steers, as an address": ({"uri": "file:///w/CLAUDE.md"}, "ask_person", "steering.file"),
    "what steers, by case": ({"path": "a/claude.MD"}, "ask_person", "steering.file"),
    "what steers, by a line": ({"text": "echo x >> ~/.bashrc"}, "ask_person", "steering.file"),
    "a pattern that runs": ({"command": "rm -rf build"}, "ask", "delete.recursive"),
    "what is not understood": ({"script": "$X --go"}, "ask", "not_understood"),
}


@pytest.mark.parametrize("name", list(HARD))
def test_what_is_said_in_it_is_decided_whoever_allows_the_tool(name: str) -> None:
    arguments, decision, rule = HARD[name]
    assert of(arguments, GRANTED, allowed=True) == (decision, rule)
    if decision != "ask":  # the bypass is for patterns
        assert of(arguments, EVERYTHING, allowed=True) == (decision, rule)
    said = judge(Served(TOOL, arguments, allowed=True), WHO, GRANTED)
    assert said.patterns == ()


def test_the_deny_list_holds_for_it() -> None:
    denied = replace(EVERYTHING, denied=("git push",))
    assert of({"line": "git push x y"}, denied, allowed=True) == ("refuse", "deny.listed")


@pytest.mark.parametrize(
    "arguments", [{"a": "word " * 5_000}, {"a": ["x"] * 500}, {str(at): "x" for at in range(300)}],
    ids=["long", "many", "many fields"],
)  # fmt: skip
def test_what_cannot_be_looked_through_is_asked_about_each_time(arguments: dict[str, Any]) -> None:
    said = judge(Served(TOOL, arguments, allowed=True), WHO, EVERYTHING)
    assert (said.decision, said.rule, said.patterns) == ("ask", "served.long", ())


def test_where_nobody_is_asked_it_is_refused() -> None:
    assert of(HARMLESS, replace(PLAIN, mode=Mode.DENY)) == ("refuse", "mode.deny:served")
    assert of(HARMLESS, replace(PLAIN, mode=Mode.DENY), allowed=True) == ("allow", "served.allowed")


@pytest.mark.parametrize("who", [None, Identity("", "s"), Identity("p", "")], ids=["nobody", "no person", "no session"])
def test_of_nobody_it_is_refused(who: Identity | None) -> None:
    said = judge(Served(TOOL, HARMLESS, allowed=True), who, EVERYTHING)
    assert (said.decision, said.rule) == ("refuse", "identity.missing")
    assert judge(Served(TOOL, HARMLESS, allowed=True), WHO, None).rule == "identity.missing"


@pytest.mark.parametrize(
    ("more", "name", "profile", "allows"),
    [
        ({}, "mcp_files_write", "default", False),
        ({"allowed": ("write",)}, "mcp_files_write", "default", True),
        ({"allowed": ("write",)}, "mcp_files_write_all", "default", False),
        ({"allowed": ("write_all",)}, "mcp_files_write_all", "default", True),
        ({"allowed": ("*",)}, "mcp_files_anything", "default", True),
        ({"allowed": ("*",)}, "mcp_other_anything", "default", False),
        ({"allowed": ("*",), "allowed_in": ("night",)}, "mcp_files_write", "default", False),
        ({"allowed": ("*",), "allowed_in": ("night",)}, "mcp_files_write", "night", True),
        ({"allowed": ("*",), "allowed_in": ()}, "mcp_files_write", "night", False),
        ({"repeatable": ("write",)}, "mcp_files_write", "default", False),
    ],
)
def test_what_the_operator_allows(more: dict[str, Any], name: str, profile: str, allows: bool) -> None:
    servers = {"files": McpServer(command=("x",), **more)}
    assert mcp.allows(servers, name, profile) is allows
