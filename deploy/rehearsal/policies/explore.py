"""Owns the walk through the workspace: which folders to list and which files to read next, in few steps."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from deploy.rehearsal.loose import Json, object_or_empty
from deploy.rehearsal.policies.kinds import BY_ENDING, Kind, kind_of
from deploy.rehearsal.policies.view import HANDLES, PATHS, PATTERNS, Ran, Tool, View, normal
from deploy.rehearsal.policies.workspace import Workspace
from deploy.rehearsal.reply import ToolWish

MOST_STEPS: Final = 12
LAST_LISTING_STEP: Final = 9
LISTS_A_STEP: Final = 8
READS_A_STEP: Final = 8
MOST_FILES: Final = 28
MOST_BACK: Final = 40
MOST_BYTES: Final = 600_000
DEPTH: Final = 5
COMMITS: Final = 30
DUE: Final = r"(?i)\b(due|deadline|overdue|urgent|todo|fixme|asap|no later than)\b"
NAMED: Final = re.compile(r"(?:[\w.-]+/)+[\w.-]+\w|[\w-]+\.\w+")
WEIGHTS: Final = {
    Kind.MAIL: 0.0,
    Kind.CALENDAR: 0.0,
    Kind.NOTE: 1.0,
    Kind.TABLE: 1.0,
    Kind.LOG: 2.0,
    Kind.DATA: 5.0,
    Kind.CODE: 6.0,
    Kind.OPAQUE: 100.0,
}
# What people write beside their work rather than about it.
BOILERPLATE: Final = re.compile(
    r"(?i)(?:^|/)(?:license|notice|copying|code_of_conduct|contributing|authors|[\w.-]*lock|requirements[\w-]*)(?:\.\w+)?$"
    r"|(?:^|/)requirements/"
)
# With more files than this, licences and locks are not worth a read.
CROWDED: Final = 12
MOST_CODE: Final = 10


def next_calls(view: View, known: Workspace, targets: list[str]) -> list[ToolWish]:
    """The calls of the next step; empty when enough was seen."""
    if view.steps >= MOST_STEPS:
        return []
    if targets:
        return _reads(view, known, [path for path in targets if path not in known.asked])
    if view.steps == 0 and not known.listed:
        return _first(view)
    calls: list[ToolWish] = []
    lister = view.tools.get("list")
    waiting = known.unlisted()
    if lister is not None and view.steps <= LAST_LISTING_STEP:
        calls += [_listing(lister, folder) for folder in waiting[:LISTS_A_STEP]]
    if view.steps == 1 and "search" in view.tools and not known.matches:
        calls += _search(view.tools["search"])
    everything_listed = not waiting or lister is None or view.steps > LAST_LISTING_STEP
    calls += _reads(view, known, _wanted(known, everything_listed))
    return calls


def paging_back(view: View, looked: Sequence[Ran]) -> list[ToolWish]:
    """The calls that bring back what was taken out of the prompt since it was read, each asked for once."""
    tool = view.tools.get("page")
    name = None if tool is None else tool.argument(HANDLES)
    if tool is None or name is None:
        return []
    asked = {ran.input.get(name) for ran in looked if ran.role == "page"}
    gone = (ran.left_out for ran in looked if ran.role != "page")
    wanted = [handle for handle in dict.fromkeys(gone) if handle is not None and handle not in asked]
    return [ToolWish(tool.name, {name: handle}) for handle in wanted[:MOST_BACK]]


def targets_of(asked: str) -> list[str]:
    """Files that the person names, by a path or by an ending that files have."""
    found = (normal(name) for name in NAMED.findall(asked))
    return list(dict.fromkeys(name for name in found if name.rpartition(".")[2].lower() in BY_ENDING))


def _first(view: View) -> list[ToolWish]:
    calls: list[ToolWish] = []
    if "list" in view.tools:
        calls.append(_listing(view.tools["list"], "."))
    if "log" in view.tools:
        log = view.tools["log"]
        calls.append(ToolWish(log.name, {"limit": COMMITS} if "limit" in log.properties else {}))
    if not calls and "search" in view.tools:
        calls += _search(view.tools["search"])
    return calls


def _listing(tool: Tool, folder: str) -> ToolWish:
    given: Json = {}
    name = tool.argument(PATHS)
    if name is not None:
        given[name] = folder
    if "depth" in tool.properties:
        most: Any = object_or_empty(tool.properties["depth"]).get("maximum", DEPTH)
        given["depth"] = min(DEPTH, most) if isinstance(most, int) else DEPTH
    return ToolWish(tool.name, given)


def _search(tool: Tool) -> list[ToolWish]:
    name = tool.argument(PATTERNS)
    return [] if name is None else [ToolWish(tool.name, {name: DUE})]


def _reads(view: View, known: Workspace, paths: list[str]) -> list[ToolWish]:
    tool = view.tools.get("read")
    name = None if tool is None else tool.argument(PATHS)
    if tool is None or name is None:
        return []
    left = MOST_FILES - len(known.asked)
    return [ToolWish(tool.name, {name: path}) for path in paths[: max(0, min(READS_A_STEP, left))]]


def _wanted(known: Workspace, everything_listed: bool) -> list[str]:
    """Unread files, the most telling first; while folders are still closed, only those worth reading anyhow."""
    newest = sorted((file.modified for file in known.files.values() if file.modified), reverse=True)
    recent = newest[min(len(newest) - 1, max(3, len(newest) // 5))] if newest else ""
    spent = sum(known.files[path].size or 0 for path in known.asked if path in known.files)
    crowded = len(known.files) > CROWDED
    scored: list[tuple[float, str]] = []
    for file in known.files.values():
        if file.path in known.asked or file.size == 0 or (crowded and BOILERPLATE.search(file.path)):
            continue
        score = WEIGHTS[kind_of(file.path)] + 0.1 * file.path.count("/")
        score -= 1.5 if file.modified and file.modified >= recent else 0.0
        score -= 2.0 if file.path.rpartition("/")[2].lower().startswith("readme") else 0.0
        if score < (50.0 if everything_listed else 2.5):
            scored.append((score, file.path))
    wanted: list[str] = []
    for path in _spread(sorted(scored), known):
        spent += min(known.files[path].size or 0, 40_000)
        if spent > MOST_BYTES:
            break
        wanted.append(path)
    return wanted


def _spread(scored: list[tuple[float, str]], known: Workspace) -> list[str]:
    """Programs come few and from different folders, so that one folder does not stand for all."""
    taken: Counter[str] = Counter(path.rpartition("/")[0] for path in known.asked)
    code = sum(kind_of(path) is Kind.CODE for path in known.asked)
    spread: list[tuple[float, str]] = []
    for score, path in scored:
        folder = path.rpartition("/")[0]
        if kind_of(path) is Kind.CODE:
            spread.append((score + 2.0 * taken[folder], path))
            taken[folder] += 1
        else:
            spread.append((score, path))
    ordered = [path for _, path in sorted(spread)]
    room = max(0, MOST_CODE - code)
    programs = set([path for path in ordered if kind_of(path) is Kind.CODE][:room])
    return [path for path in ordered if path in programs or kind_of(path) is not Kind.CODE]
