"""Owns the words of the command line: every command, its arguments, and what `--help` says."""

from __future__ import annotations

import argparse
from typing import Protocol

_EXITS = "exit codes: 0 done, 1 failed, 2 wrong use, 3 parked on a person, 4 money"
_PROCESSES = "api, worker, scheduler, beat, flower, migrate run the processes themselves"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="nightshift",
        description="A client of a Nightshift API: NIGHTSHIFT_URL and NIGHTSHIFT_TOKEN, or the local stack's own.",
        epilog=f"{_PROCESSES}. {_EXITS}.",
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _turns(commands)
    _reading(commands)
    _jobs(commands)
    _memory(commands)
    _people(commands)
    _stops(commands)
    _money(commands)
    return top


class _Group(Protocol):
    """What `add_subparsers` answers; argparse gives that class no public name."""

    def add_parser(self, name: str, *, help: str, description: str, epilog: str) -> argparse.ArgumentParser: ...  # noqa: A002 - argparse's word


def _add(commands: _Group, name: str, help: str, *, json: bool = True) -> argparse.ArgumentParser:  # noqa: A002 - argparse's word
    made = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=_EXITS)
    if json:
        made.add_argument("--json", action="store_true", help="the API's own JSON on stdout")
    return made


def _turns(commands: _Group) -> None:
    chat = _add(
        commands,
        "chat",
        "talk: a line typed while it works steers, approvals are asked inline, Ctrl-C cancels the turn",
    )
    chat.add_argument("--session", metavar="S", help="go on in this session")
    chat.add_argument("--cap-usd", metavar="USD", type=dollars, help="most that the new session may cost")
    chat.add_argument(
        "--keep-warm", action="store_true", help="read it before the provider forgets it; costs, unattended"
    )
    _for_new_session(chat)

    send = _add(commands, "send", "send one message")
    send.add_argument("text", nargs="?", metavar="TEXT", help="the message; or use --file")
    send.add_argument("--file", metavar="PATH", help="read the message from a file, '-' is stdin")
    send.add_argument("--session", metavar="S", help="an existing session (a new one is made otherwise)")
    send.add_argument(
        "--wait", action="store_true", help="until the turn ends or waits for a person; prints its answer"
    )
    send.add_argument("--on-busy", choices=("queue", "steer", "reject"), help="what to do while a turn runs")
    send.add_argument("--cap-usd", metavar="USD", type=dollars, help="most that this turn may cost")
    send.add_argument("--max-steps", metavar="N", type=positive, help="most steps of this turn")
    send.add_argument("--idempotency-key", metavar="KEY", help="sent twice under one key, it happens once")
    _for_new_session(send)

    watch = _add(commands, "watch", "follow a turn until it ends or waits for a person; --json gives one event a line")
    watch.add_argument("turn", metavar="TURN")
    watch.add_argument("--from", dest="last_id", metavar="ID", help="only what comes after this event id")
    watch.add_argument("--patience", metavar="S", type=seconds, default=120.0, help="give up after so long without one")

    cap = _add(commands, "cap", "set what a turn or a session may cost, also while it runs or waits for money")
    cap.add_argument("scope", choices=("turn", "session"))
    cap.add_argument("subject", metavar="ID")
    cap.add_argument("usd", metavar="USD", type=dollars_or_none, help="such as 0.50; 'none' takes the cap away")
    warm = _add(commands, "warm", "keep a session warm at the provider while nobody is there, or stop it; it costs")
    warm.add_argument("session", metavar="SESSION")
    warm.add_argument("wanted", choices=("on", "off"))
    model = _add(
        commands, "model", "which model answers in a session from its next turn on; says first what that costs"
    )
    model.add_argument("session", metavar="SESSION")
    model.add_argument("model", metavar="MODEL")
    model.add_argument("--provider", metavar="NAME", help="where that model is, if it is not where the last one was")
    model.add_argument("--yes", action="store_true", help="do not ask: switch at whatever price is told")
    title = _add(commands, "title", "name a session; no model writes another name over it")
    title.add_argument("session", metavar="SESSION")
    title.add_argument("text", nargs="+", metavar="TEXT")
    cancel = _add(commands, "cancel", "cancel a turn")
    cancel.add_argument("turn", metavar="TURN")
    steer = _add(commands, "steer", "say something to a turn that is working")
    steer.add_argument("turn", metavar="TURN")
    steer.add_argument("text", metavar="TEXT")


def _for_new_session(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", metavar="M", help="model of a new session")
    command.add_argument("--title", metavar="T", help="title of a new session")
    command.add_argument("--audience", choices=("private", "team"), help="who may see a new session")
    command.add_argument("--folder", metavar="PATH", help="attached read-only to a new session's workspace")


def _reading(commands: _Group) -> None:
    sessions = _add(commands, "sessions", "list sessions, newest first")
    sessions.add_argument("--limit", metavar="N", type=positive, default=20, help="how many (%(default)s)")

    show = _add(commands, "show", "print a session's transcript and its bill")
    show.add_argument("session", metavar="SESSION")
    show.add_argument("--tools", action="store_true", help="with what the tools answered")
    show.add_argument(
        "--context", action="store_true", help="what the model sees instead: floor, summaries, stubs, and each decision"
    )
    _of_transcript(commands)

    search = _add(commands, "search", "find what was said, in every session that you may see")
    search.add_argument("words", nargs="+", metavar="WORDS", help='all of them count; "quoted words" stand together')
    search.add_argument("--session", metavar="S", help="only in this session, each message a hit")
    search.add_argument("--limit", metavar="N", type=positive, default=10, help="how many (%(default)s)")

    artifact = _add(commands, "artifact", "print the whole of a result that the transcript holds a preview of")
    artifact.add_argument("session", metavar="SESSION")
    artifact.add_argument("id", metavar="ID", help="as the preview names it, with or without 'artifact:'")
    artifact.add_argument("--out", metavar="FILE", help="into this file, byte for byte")

    approvals = _add(commands, "approvals", "list what waits for a person's decision")
    states = ("pending", "approved", "denied", "expired", "void", "all")
    approvals.add_argument("--status", choices=states, default="pending", help="which (%(default)s)")
    for name, help_ in (
        ("approve", "allow one call that waits for a decision"),
        ("deny", "refuse one call that waits for a decision; the model reads the note"),
    ):
        decide = _add(commands, name, help_)
        decide.add_argument("approval", metavar="ID", help="as `nightshift approvals` lists it")
        decide.add_argument("--note", metavar="TEXT", help="why")
        if name == "approve":
            scopes = ("once", "session", "always")
            decide.add_argument("--scope", choices=scopes, default="once", help="how far it goes (%(default)s)")
    _of_the_gate(commands)

    replay = _add(commands, "replay", "print the exact request of a step, rebuilt from the rows", json=False)
    replay.add_argument("turn", metavar="TURN")
    replay.add_argument("--step", metavar="N", type=int, help="the last one where it is not given")
    replay.add_argument("--calls", action="store_true", help="list the turn's calls instead")
    replay.add_argument("--json", action="store_true", help="with --calls: as JSON (a request is JSON anyway)")

    _add(commands, "doctor", "check every part and name the mend of what fails")


def _of_the_gate(commands: _Group) -> None:
    gate = _add(commands, "gate", "say what would be decided of a command, and why; it is not run")
    gate.add_argument("words", nargs="+", metavar="COMMAND", help="best in quotes, as one word")
    gate.add_argument("--profile", default="default", help="as in a session of this profile (%(default)s)")
    gate.add_argument("--job", action="store_true", help="as of a job")
    gate.add_argument("--session", metavar="S", help="with what was granted to you in this session")
    grants = _add(commands, "grants", "list what was allowed beyond one call, or end it")
    grants.add_argument("--revoke", metavar="ID", help="end this one")
    grants.add_argument("--ended", action="store_true", help="show what was revoked too")
    bypass = _add(commands, "bypass", "for a time, ask for no pattern's sake in one session; an approver's to open")
    bypass.add_argument("session", metavar="SESSION")
    bypass.add_argument("--minutes", type=positive, required=True, help="at most 480")
    bypass.add_argument("--note", metavar="TEXT", default="", help="why; it stands in the audit")


def _of_transcript(commands: _Group) -> None:
    rewind = _add(commands, "rewind", "take back everything from a turn's first message on, that turn included")
    rewind.add_argument("session", metavar="SESSION")
    rewind.add_argument("--to", metavar="TURN", required=True, help="the first turn that is taken back")
    restore = _add(commands, "restore", "undo a rewind: what it took back stands again where it stood")
    restore.add_argument("session", metavar="SESSION")
    restore.add_argument("--rewind", metavar="ID", help="which (`show --context` lists them); the newest by default")
    compact = _add(commands, "compact", "let a summary stand for the middle of a conversation")
    compact.add_argument("session", metavar="SESSION")


def _people(commands: _Group) -> None:
    people = _add(commands, "people", "list and change who may sign in")
    actions = people.add_subparsers(dest="action", metavar="ACTION", title="actions")
    roles = ("viewer", "member", "approver", "admin")
    add = _add(actions, "add", "add a person")
    add.add_argument("name", metavar="NAME")
    add.add_argument("--role", choices=roles, default="member", help="what they may do (%(default)s)")
    add.add_argument("--service", action="store_true", help="it is a program that acts by itself")
    for name, help_ in (
        ("role", "give a person another role"),
        ("disable", "take a person's access away"),
        ("enable", "give a person's access back"),
    ):
        action = _add(actions, name, help_)
        action.add_argument("person", metavar="PERSON", help="id or name")
        if name == "role":
            action.add_argument("role", choices=roles)
        else:
            action.set_defaults(role=None)
    tokens = _add(commands, "tokens", "list, make and revoke tokens")
    actions = tokens.add_subparsers(dest="action", metavar="ACTION", title="actions")
    add = _add(actions, "add", "make a token for a person; it is shown once")
    add.add_argument("person", metavar="PERSON", help="id or name")
    add.add_argument("--label", metavar="TEXT", help="where it is used")
    revoke = _add(actions, "revoke", "revoke a token at once")
    revoke.add_argument("token", metavar="TOKEN", help="its id, as `nightshift tokens` lists it")


def _jobs(commands: _Group) -> None:
    jobs = _add(commands, "jobs", "list and change cron jobs")
    actions = jobs.add_subparsers(dest="action", metavar="ACTION", title="actions")
    add = _add(actions, "add", "make a job")
    add.add_argument("name", metavar="NAME")
    _job_fields(add, needed=True)
    edit = _add(actions, "edit", "change a job")
    edit.add_argument("job", metavar="JOB")
    edit.add_argument("--name", metavar="NAME")
    _job_fields(edit, needed=False)
    edit.add_argument("--unset", action="append", metavar="FIELD", help="take away, such as cap_usd; may be repeated")
    for name, help_ in (
        ("run", "run a job now"),
        ("pause", "stop a job from coming due"),
        ("resume", "let a paused job come due again"),
        ("remove", "remove a job; its runs stay"),
        ("runs", "list a job's runs"),
        ("explain", "tell when a job comes due, in local time and UTC"),
    ):
        action = _add(actions, name, help_)
        action.add_argument("job", metavar="JOB", help="id or name")
        if name == "run":
            action.add_argument("--wait", action="store_true", help="until the run ends; prints its answer")


def _job_fields(command: argparse.ArgumentParser, *, needed: bool) -> None:
    command.add_argument("--cron", metavar="EXPR", required=needed, help="five fields, such as '30 6 * * 1-5'")
    command.add_argument("--zone", metavar="ZONE", help="IANA zone, such as Europe/Berlin")
    command.add_argument("--prompt", metavar="TEXT", help="the part that is the same each time; @PATH reads a file")
    command.add_argument("--tail", metavar="TEXT", help="the part that may change from run to run")
    command.add_argument("--folder", metavar="PATH", help="attached read-only to the workspace")
    command.add_argument("--workspace", metavar="PATH", help="kept from run to run (default: a fresh one each)")
    command.add_argument("--model", metavar="M")
    command.add_argument("--cap-usd", metavar="USD", type=dollars, help="most that one run may cost")
    command.add_argument("--max-steps", metavar="N", type=positive)
    command.add_argument("--deadline", dest="deadline_s", metavar="S", type=positive, help="seconds a run may take")
    command.add_argument("--audience", choices=("private", "team"))
    command.add_argument(
        "--stop-same", metavar="N", type=positive, help="pause it once N runs in a row have said the same (off)"
    )
    command.add_argument(
        "--stop-dearer", metavar="X", type=dollars, help="pause it once five runs cost X times the five before (off)"
    )
    command.add_argument("--deliver-session", metavar="S", help="the brief is delivered into this session")
    command.add_argument(
        "--deliver-file",
        metavar="PATH",
        help="folder into which each run's brief is written (default: briefs/ of the home)",
    )


def _memory(commands: _Group) -> None:
    memory = _add(commands, "memory", "what is known in later conversations, of the team and of you")
    actions = memory.add_subparsers(dest="action", metavar="ACTION", title="actions")
    show = _add(actions, "show", "print it with its revision")
    show.add_argument("scope", nargs="?", choices=("team", "me"), help="both where it is not given")
    for name, help_ in (
        ("add", "keep one more entry"),
        ("remove", "take one entry out"),
        ("set", "have these entries and no other"),
        ("history", "list the changes: what, by whom, in which turn"),
    ):
        action = _add(actions, name, help_)
        action.add_argument("scope", choices=("team", "me"))
        if name == "add":
            action.add_argument("text", metavar="TEXT")
        elif name == "remove":
            action.add_argument("number", metavar="N", type=positive, help="as `nightshift memory show` counts them")
        elif name == "set":
            action.add_argument("entries", nargs="*", metavar="ENTRY")
        if name in ("remove", "set"):
            action.add_argument("--revision", metavar="R", type=int, help="only if nobody has changed that one")
    share = _add(actions, "share", "put entries of your own before a conversation and all who read it")
    share.add_argument("session", metavar="SESSION")
    share.add_argument("number", nargs="*", metavar="N", type=positive, help="which; all where none is given")
    share.add_argument("--profile", action="store_true", help="of your profile instead of your memory")
    profile = _add(commands, "profile", "what you say of yourself to an agent that works for you alone")
    actions = profile.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _add(actions, "show", "print it with its revision")
    _add(actions, "history", "list the changes")
    put = _add(actions, "set", "have this text; an empty one takes it away")
    put.add_argument("text", metavar="TEXT")
    put.add_argument("--revision", metavar="R", type=int, help="only if nobody has changed that one")


def _stops(commands: _Group) -> None:
    stop = _add(commands, "stop", "stop claims: of the whole fleet, a person, a job, a profile, or the calls of a tool")
    stop.add_argument("scope", choices=("fleet", "person", "job", "profile", "tool"))
    stop.add_argument("subject", nargs="?", metavar="SUBJECT", help="whose: a name or an id; nothing with fleet")
    stop.add_argument("--cancel", action="store_true", help="also cancel what is there now, with its trees")
    stop.add_argument("--note", metavar="TEXT", default="", help="why; the model reads it where a tool is stopped")
    stops = _add(commands, "stops", "list what is stopped")
    stops.add_argument("--lifted", action="store_true", help="with those that were lifted")
    resume = _add(commands, "resume", "lift a stop")
    resume.add_argument("stop", metavar="ID", help="as `nightshift stops` lists it")


def _money(commands: _Group) -> None:
    ledger = _add(commands, "ledger", "money and tokens")
    by = ("day", "principal", "session", "job", "model", "provider", "purpose")
    ledger.add_argument("--by", choices=by, default="day")
    ledger.add_argument("--since", metavar="TIME", help="with its offset, such as 2026-11-30T00:00:00Z")
    ledger.add_argument("--until", metavar="TIME", help="as --since; not included")
    shape = ledger.add_mutually_exclusive_group()
    shape.add_argument("--csv", action="store_true", help="every column as CSV on stdout")
    shape.add_argument("--plot", action="store_true", help="a bar a row, by what it cost")
    actions = ledger.add_subparsers(dest="action", metavar="ACTION", title="actions")
    reconcile = _add(actions, "reconcile", "compare with a provider's usage export, by day, model and kind of token")
    reconcile.add_argument("file", metavar="CSV", help="as Anthropic's or OpenAI's console exports usage")
    reconcile.add_argument("--ignore-unknown", action="store_true", help="leave columns out that nobody here knows")
    budgets = _add(commands, "budgets", "caps that many turns share, of a job, a person or the team, and their use")
    actions = budgets.add_subparsers(dest="action", metavar="ACTION", title="actions")
    put = _add(actions, "set", "set a shared cap; it holds from the next call of every turn on")
    put.add_argument("scope", choices=("job", "person", "team"))
    put.add_argument("subject", metavar="SUBJECT", help="id or name; '*' for all without one of their own; 'team'")
    put.add_argument("period", choices=("day", "month", "ever"))
    put.add_argument("usd", metavar="USD", type=none_or_more, help="such as 100; 0 for nothing; 'none' takes it away")
    put.add_argument("--was", metavar="USD", type=none_or_more, help="only if that is the cap now, or 'none'")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86_400:
        raise argparse.ArgumentTypeError("more than 0 and less than a day")
    return number


def none_or_more(text: str) -> str:
    return text if text == "none" or text in ("0", "$0") else dollars(text)


def dollars_or_none(text: str) -> str | None:
    return None if text == "none" else dollars(text)


def dollars(text: str) -> str:
    """Kept as text: a float would change what the person wrote."""
    from decimal import Decimal, InvalidOperation

    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation as error:
        raise argparse.ArgumentTypeError("dollars, such as 0.50") from error
    if not amount.is_finite() or amount <= 0:
        raise argparse.ArgumentTypeError("more than 0")
    return str(amount)
