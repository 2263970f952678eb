"""Owns the choice of behaviour where no script speaks: look, read, brief, answer from what was seen, or talk."""

import re
from dataclasses import replace
from typing import Final

from deploy.rehearsal.loose import Json
from deploy.rehearsal.policies import brief, explore, followup, handing, summary, talk
from deploy.rehearsal.policies.view import View, view
from deploy.rehearsal.policies.workspace import gather
from deploy.rehearsal.reply import Reply

BRIEF: Final = re.compile(
    r"(?i)\b(?:brief(?:ing)?|summar\w+|report|overview|digest|overnight|morning"
    r"|what(?:'s| is| has)? (?:changed|new|due))\b"
)
TASK: Final = re.compile(
    r"(?i)\b(?:look|read|find|search|list|show|check|review|inspect|go through|files?|folders?|workspace|"
    r"repo(?:sitory)?|commits?|history|notes?|mails?|inbox|calendar|csv|logs?|numbers)\b"
)
LOOKING: Final = "Rehearsal: looking at the workspace."
READING: Final = "Rehearsal: reading what was found."
CHUNK: Final = 90
# So that a stream is seen as one.
GAP_S: Final = 0.004


def decide(request: Json) -> tuple[Reply, str]:
    """The stand-in's own reply, and the name of the policy for the ledger."""
    asked = summary.wanted(request)
    if asked is not None:
        return summary.reply(request, asked), "policy summary"
    seen = view(request)
    if seen.ran or (seen.broke_in and seen.tools):
        return _go_on(seen)
    earlier = gather(seen.earlier)
    if not seen.tools:
        if seen.earlier:
            return _say(
                followup.reply(seen.asked, earlier) or brief.write(earlier, seen.asked, True)
            ), "policy follow-up"
        return _say(talk.reply(seen.asked, seen.turns, False)), "policy talk"
    if not BRIEF.search(seen.asked):
        found = followup.reply(seen.asked, earlier) if seen.earlier else None
        if found is not None:
            return _say(found), "policy follow-up"
        if not TASK.search(seen.asked) and not explore.targets_of(seen.asked):
            return _say(talk.reply(seen.asked, seen.turns, True)), "policy talk"
    return _go_on(seen)


def _go_on(seen: View) -> tuple[Reply, str]:
    handed = handing.decide(seen)
    if handed is not None:
        reply, name = handed
        return (reply if reply.tools else _say(reply.text)), name
    seen = handing.without(seen)
    looked = (*seen.earlier, *seen.ran) if seen.broke_in else seen.ran
    known = gather(looked)
    targets = [] if BRIEF.search(seen.asked) else explore.targets_of(seen.asked)
    calls = explore.next_calls(seen, known, targets) or explore.paging_back(seen, looked) if seen.tools else []
    if calls:
        return Reply(
            text=LOOKING if not seen.steps else READING, tools=tuple(calls)
        ), f"policy brief, step {seen.steps + 1}"
    could_read = "read" in seen.tools or bool(known.reads)
    return _say(brief.write(known, seen.asked, could_read)), "policy brief"


def _say(text: str) -> Reply:
    return Reply(text=text, chunks=max(1, len(text) // CHUNK), gap_s=GAP_S)


def with_thinking(reply: Reply) -> Reply:
    """The reply with a short line of reasoning, for requests that ask for it."""
    if reply.tools:
        return replace(reply, thinking="Rehearsal: looking at what the tools can show before writing anything.")
    return replace(reply, thinking="Rehearsal: writing from what this request shows, and nothing else.")
