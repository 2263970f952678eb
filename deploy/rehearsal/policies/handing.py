"""Owns handing work on: two agents where the request asks for it, their reports made one brief, and a look at what they
quote. It knows of them only what the result of the call says."""

import re
from dataclasses import dataclass, replace
from typing import Final

from deploy.rehearsal.loose import object_or_empty
from deploy.rehearsal.policies.lines import short
from deploy.rehearsal.policies.talk import BANNER
from deploy.rehearsal.policies.view import Ran, View, normal
from deploy.rehearsal.reply import Reply, ToolWish

ASKED: Final = re.compile(r"(?i)\bdelegate\b")
HANDING: Final = "Rehearsal: handing the history to one agent and the rest to another."
CHECKING: Final = "Rehearsal: looking at what the reports quote."
HISTORY: Final = "Report on the history: the commits, who made them, what they changed."
REST: Final = "Report on all but the history: read what is there, quote what is due or open."
HEAD: Final = re.compile(r"^\[child (\d+) of \d+: (\w+), (.*)\]$", re.MULTILINE)
REPORT: Final = re.compile(r'^<report child="(\d+)">\n(.*?)\n</report>$', re.MULTILINE | re.DOTALL)
CUT: Final = re.compile(r"^\[(\d+ more characters: .*)\]$", re.MULTILINE)
SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
QUOTED: Final = re.compile(
    r"(?:“(?P<quote>[^”]+)”|^- (?P<line>.+?)) \(`(?P<path>[^`]+?):(?P<number>\d+)`\)", re.MULTILINE
)
LAST: Final = ("Other files", "Files read", "Not done")
NOTHING: Final = "the tools showed nothing"
BLIND: Final = "No tool here reads files"
MOST_CHECKS: Final = 3
WORTH_CHECKING: Final = ("Due, and dates", "Notes")


@dataclass(frozen=True, slots=True)
class Report:
    """Of one agent: how it ended, and its own words by section, in order."""

    number: str
    status: str
    told: str
    text: str

    @property
    def summary(self) -> str:
        found = re.search(r"^In short: (.+)$", self.text, re.MULTILINE)
        return found[1].rstrip(".") if found and NOTHING not in found[1] else ""

    @property
    def sections(self) -> dict[str, str]:
        parts = SECTION.split(self.text)
        return {title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)}


@dataclass(frozen=True, slots=True)
class Quote:
    words: str
    path: str
    number: int


def decide(seen: View) -> tuple[Reply, str] | None:
    """The next step where work is handed on; None where it is not, or where nothing came of it."""
    handed = [ran for ran in seen.ran if ran.role == "delegate"]
    if not handed:
        tool = seen.tools.get("delegate")
        if tool is None or seen.steps or not ASKED.search(seen.asked):
            return None
        return Reply(text=HANDING, tools=(ToolWish(tool.name, {"tasks": _tasks(seen)}),)), "policy hand on"
    reports = _reports(handed)
    if not any(report.sections for report in reports):
        return None
    looked = [ran for ran in seen.ran if ran.role == "read"]
    checks = [] if looked else _checks(seen, reports)
    if checks:
        return Reply(text=CHECKING, tools=tuple(checks)), "policy check"
    text = _brief(seen, reports, looked, [cut for ran in handed for cut in CUT.findall(ran.text)])
    return Reply(text=text), "policy brief of reports"


def without(seen: View) -> View:
    """The same, as if nothing had been handed on: what is left to do alone."""
    steps = {ran.step for ran in seen.ran if ran.role == "delegate"}
    rest = tuple(ran for ran in seen.ran if ran.role != "delegate")
    return replace(seen, ran=rest, steps=seen.steps - len(steps))


def _tasks(seen: View) -> list[dict[str, object]]:
    """Each gets the tools of its part. It knows nothing else, so the request goes along."""
    names = {role: tool.name for role, tool in seen.tools.items() if role != "delegate"}
    wish = next((line for line in seen.asked.splitlines() if line.strip()), "")
    context = f"It is for this request: “{short(wish, 400)}”"
    rest = [name for role, name in names.items() if role != "log"]
    parts = [(HISTORY, [names["log"]] if "log" in names else []), (REST, rest)]
    return [{"goal": goal, "context": context, "tools": tools} for goal, tools in parts if tools]


def _reports(handed: list[Ran]) -> list[Report]:
    found: list[Report] = []
    for ran in handed:
        texts = dict(REPORT.findall(ran.text))
        outside = REPORT.sub("", ran.text)
        found += [Report(number, status, told, texts.get(number, "")) for number, status, told in HEAD.findall(outside)]
    return found


def _quotes(reports: list[Report]) -> list[Quote]:
    """One a file, from the sections that matter first."""
    found: dict[str, Quote] = {}
    for title in WORTH_CHECKING:
        for report in reports:
            for match in QUOTED.finditer(report.sections.get(title, "")):
                words = (match["quote"] or match["line"]).rstrip("…").strip()
                found.setdefault(match["path"], Quote(words, normal(match["path"]), int(match["number"])))
    return list(found.values())[:MOST_CHECKS]


def _checks(seen: View, reports: list[Report]) -> list[ToolWish]:
    tool = seen.tools.get("read")
    if tool is None or not {"path", "offset", "limit"} <= tool.properties.keys():
        return []
    return [ToolWish(tool.name, {"path": quote.path, "offset": quote.number, "limit": 1}) for quote in _quotes(reports)]


def _brief(seen: View, reports: list[Report], looked: list[Ran], cuts: list[str]) -> str:
    wish = next((line for line in seen.asked.splitlines() if line.strip()), "")
    short_of_all = "; ".join(report.summary for report in reports if report.summary)
    sections: dict[str, list[str]] = {}
    reads = any("Files read" in report.sections for report in reports)
    for report in reports:
        for title, body in report.sections.items():
            lines = [line for line in body.splitlines() if not (reads and BLIND in line)]
            if any(line.strip() for line in lines):
                sections.setdefault(title, []).extend(lines)
    missing = [f"- agent {r.number} {r.status}: {short(r.text or 'no report', 160)}" for r in reports if not r.sections]
    missing += [f"- a report did not fit here; {short(cut, 160)}" for cut in cuts]
    if missing:
        sections.setdefault("Not done", []).extend(missing)
    first = [title for title in sections if title not in LAST]
    ordered = [(title, sections[title]) for title in (*first, *(name for name in LAST if name in sections))]
    checked = _checked(reports, looked)
    ordered += [("Checked", checked)] if checked else []
    ordered.append(("Who looked", [f"- agent {r.number} ({r.status}, {short(r.told, 120)})" for r in reports]))
    head = [BANNER, "# Brief", f"Asked: “{short(wish, 240)}”", f"In short: {short_of_all or NOTHING}."]
    return "\n\n".join([*head, *("\n".join([f"## {title}", *lines]) for title, lines in ordered)])


def _checked(reports: list[Report], looked: list[Ran]) -> list[str]:
    """Reports are self-reports: what was looked up stands there, or it does not."""
    lines: list[str] = []
    for quote in _quotes(reports):
        for ran in looked:
            if ran.path == quote.path and object_or_empty(ran.input).get("offset") == quote.number:
                there = " ".join(quote.words.split()) in " ".join(ran.text.split())
                lines.append(f"- `{quote.path}:{quote.number}` {'says so' if there else 'does not say so'}")
    return lines
