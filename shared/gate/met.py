"""Which rules a reading meets: the floor, the lists, what steers, what is hidden in options and code, the patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shared.gate import known, steering
from shared.gate.paths import path
from shared.gate.rules import code, files, floor, git, guessing, machine, network
from shared.gate.shell.found import Invocation, Reading
from shared.gate.shell.marks import ONE, STAR, shown
from shared.gate.shell.scope import Scope
from shared.gate.shell.walk import Feed, Walk
from shared.gate.targets import How, targets
from shared.gate.verdict import Decision, Hit

# --- what is met ----------------------------------------------------------------------------------------------------


def strict(reading: Reading) -> Iterator[Hit]:
    yield from floor.hits(reading)
    yield from guessing.hits(reading)


def hidden(reading: Reading) -> Iterator[Hit]:
    """Commands inside options, variables and inline code: whatever a shell may be handed is held against the floor."""
    texts = [text for call in reading.invocations for text in (*git.texts(call), *code.option_texts(call))]
    inline = [text for language, source in reading.code for text in code.texts(language, source)]
    for text in texts:
        inner = _read_inner(text)
        yield from strict(inner)
        yield from steered(inner)
    writes = any(code.writes(source) for _, source in reading.code)
    for text in inline:
        yield from strict(_read_inner(text))
        if not writes:
            continue
        if steering.own(path(text).parts):
            yield Hit(
                "own.configuration", Decision.REFUSE, "it would change the service's own configuration", text[:300]
            )
        elif re.fullmatch(r"[\w./~-]{3,200}", text) and steering.steers(path(text).parts):
            yield steers(text, "code in it names")


def _read_inner(text: str) -> Reading:
    reading = Reading()
    Walk(reading).text(text, Scope(), Feed())
    return reading


def rough(text: str) -> Iterator[Hit]:
    """Of a line that is not understood: whether its bare words, all marks of a shell's language left out, are of the
    floor."""
    bare = re.sub(r"\$(?:IFS|\{IFS[^}]*\})", " ", text)
    bare = re.sub(r"[\"'`\\]", "", bare)
    reading = Reading()
    for part in re.split(r"[;&|(){}\n]+|\$\(|&&|\|\|", bare):
        for words in (part.split(), part.replace(",", " ").replace("{", " ").replace("}", " ").split()):
            for start in range(min(len(words), 12)):
                reading.invocations.append(Invocation(tuple(_pattern(word) for word in words[start:])))
    braced = re.findall(r"\{([^{}\s]+,[^{}]*)\}", bare)
    reading.invocations += [Invocation(tuple(one.split(","))) for one in braced]
    yield from floor.hits(reading)


def _pattern(word: str) -> str:
    return re.sub(r"\[[^\]]*\]|\?", ONE, word).replace("*", STAR)


def patterns(reading: Reading) -> Iterator[Hit]:
    made_runnable = {
        path(word, call.cwd).text for call in reading.invocations if call.program == "chmod"
        for word in call.words[1:] if re.search(r"\+\w*x|[1357]", call.words[0])
    }  # fmt: skip
    for call in reading.invocations:
        yield from files.hits(call)
        yield from git.hits(call)
        yield from network.hits(call)
        yield from machine.hits(call)
        yield from code.of_call(call)
        yield from known.hits(call, machine.SPOKEN_OF)
        if call.argv and "/" in call.argv[0] and path(call.argv[0], call.cwd).text in made_runnable:
            yield Hit("run.made", Decision.ASK, "it makes a file a program and runs it", shown(call.argv[0])[:300])
    for language, text in reading.code:
        yield from code.of_code(language, text)


# --- lists and steering ---------------------------------------------------------------------------------------------


def listed(reading: Reading, lists: Sequence[str], rule: str) -> Iterator[Hit]:
    for call in reading.invocations:
        entry = next((entry for entry in lists if _begins(call, entry)), None)
        if entry is not None:
            yield Hit(rule, Decision.REFUSE, f"the settings deny '{entry}'", shown(" ".join(call.argv))[:300])


def all_listed(reading: Reading, lists: Sequence[str]) -> bool:
    calls = [call for call in reading.invocations if call.argv or call.redirects]
    return bool(calls) and not reading.code and all(any(_begins(call, entry) for entry in lists) for call in calls)


def _begins(call: Invocation, entry: str) -> bool:
    words = entry.split()
    mine = [call.program, *call.words]
    if len(mine) < len(words) or not words:
        return False
    return all(word in ("*", own) for word, own in zip(words, mine, strict=False))


def steered(reading: Reading) -> Iterator[Hit]:
    """A file that steers needs a person, for one operation at a time: a line that writes two of them is refused."""
    found = dict[str, Hit]()
    for call in reading.invocations:
        for target in targets(call):
            place = path(target.word, call.cwd)
            parts = place.parts
            if target.how in (How.WRITES, How.REMOVES, How.LINKS, How.MARKS, How.EXTRACTS) and steering.own(parts):
                yield own(shown(target.word))
            if target.how is How.MARKS:
                continue
            whole = target.how in (How.REMOVES, How.LINKS, How.EXTRACTS) or call.program in ("mv", "ln", "cp", "rsync")
            if steering.holds_steering(parts) if whole else steering.steers(parts):
                found.setdefault(_operation(call, place.text), steers(shown(target.word), "it writes"))
        for word in _git_hooks(call):
            found[word] = steers(word, "it says where git finds")
    distinct = {text for text in found if not any(text != o and text.startswith(f"{o}/") for o in found)}
    if len(distinct) > 1:
        names = " and ".join(sorted(shown(name) for name in distinct)[:3])
        yield Hit(
            "steering.several", Decision.REFUSE, f"it writes several files that steer ({names}): one at a time", names
        )
    yield from found.values()


def _operation(call: Invocation, text: str) -> str:
    """Two names of one copy or move are one operation."""
    one = call.program in ("cp", "mv", "ln", "install", "rsync") and len(call.words) <= 3
    return " ".join(call.argv) if one else text


def own(word: str) -> Hit:
    return Hit("own.configuration", Decision.REFUSE, "it would change the service's own configuration", word[:300])


def steers(word: str, how: str) -> Hit:
    return Hit("steering.file", Decision.ASK_PERSON, f"{how} {word[:200]}, which steers what happens later", word[:300])


def _git_hooks(call: Invocation) -> Iterator[str]:
    if call.program == "git" and "config" in call.words:
        yield from (word for word in call.words if word.casefold() == "core.hookspath")
