"""A password that is handed to `sudo` or its kin without a person at the keyboard is a guess: refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.gate.options import is_program, names
from shared.gate.shell.found import Invocation, Reading
from shared.gate.shell.marks import shown
from shared.gate.verdict import Decision, Hit

_VALUED = names("-u -g -h -p -C -r -t -T -U -D -R")


def hits(reading: Reading) -> Iterator[Hit]:
    for call in reading.invocations:
        why = _why(call)
        if why is not None:
            yield Hit("sudo.password", Decision.REFUSE, why, shown(" ".join(call.argv))[:300])


def _why(call: Invocation) -> str | None:
    if not call.argv:
        return None
    if is_program(call.program, "sudo sudoedit"):
        own = _own_options(call.words)
        if any(re.fullmatch(r"-[A-Za-z]*[SA][A-Za-z]*|--st\w*|--ask\w*", option) for option in own):
            return "it gives sudo a password that no person typed"
        if any(name == "SUDO_ASKPASS" for name, _ in call.env):
            return "it has sudo ask a program for the password"
    if is_program(call.program, "su doas runuser") and call.fed and call.feeders:
        return "it gives a password to a program that changes who acts"
    if is_program(call.program, "sshpass hydra medusa john hashcat ncrack crunch"):
        return "it hands over or guesses a password"
    if is_program(call.program, "expect autoexpect empty") and re.search(
        r"sudo|\bsu\b|assword", " ".join(call.words) + (call.stdin or "")
    ):
        return "it types a password in place of a person"
    return None


def _own_options(words: tuple[str, ...]) -> list[str]:
    """Those of sudo itself, before the command that it starts."""
    found, rest = list[str](), list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        found.append(option)
        if option in _VALUED:
            rest[:1] = []
    return found
