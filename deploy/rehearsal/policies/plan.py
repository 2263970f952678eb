"""Owns the choice of behaviour for a request that no script answers."""

from dataclasses import replace

from deploy.rehearsal.loose import Json
from deploy.rehearsal.policies import talk
from deploy.rehearsal.reply import Reply


def decide(request: Json) -> tuple[Reply, str]:
    """The stand-in's own reply, and the name of the policy for the ledger."""
    return talk.reply(request), "policy talk"


def with_thinking(reply: Reply) -> Reply:
    """The reply with a short line of reasoning, for requests that ask for it."""
    if reply.tools:
        return replace(reply, thinking="Rehearsal: looking at what the tools can show before writing anything.")
    return replace(reply, thinking="Rehearsal: writing from what this request shows, and nothing else.")
