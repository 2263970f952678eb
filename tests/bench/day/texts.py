"""Texts of a chosen kind and size from a seeded source: notes, logs, JSON, code, Chinese. Same seed, same text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

_WORDS = """
the of and to in that for with on as by at from this have not are which one all their been has more will other about
when would there out up into than time only some could these two may then first new now people over such through before
after work order report line change value team week point number part result price customer delivery station quality
supplier market invoice meeting budget review contract machine sample test reading level record target section office
harbour train window garden winter morning decision problem question answer reason version project because between
should against during without however while another under each where most since until again often small large early
late open clear short long high low main local public recent possible different important certain shows says means
takes makes gives keeps finds needs brings moves turns holds seems leads follows remains becomes
"""
_CHINESE = """
我们 今天 会议 报告 项目 客户 订单 价格 质量 供应商 市场 发票 合同 机器 样品 测试 结果 记录 目标 部门 决定 问题 原因
版本 因为 所以 但是 如果 已经 可以 需要 应该 继续 完成 开始 检查 更新 确认 通知 讨论 下周 上午 下午 之前 之后 增加
减少 重要 新的 主要 目前 情况 数据 系统 计划 时间 工作 人员 地区 生产 运输 仓库 温度 压力 速度 成本 预算 审核 风险
建议 措施
"""
WORDS, CHINESE = tuple(_WORDS.split()), tuple(_CHINESE.split())
PARTS = ("gateway", "billing", "scheduler", "ingest", "search", "mailer", "cache", "auth", "export", "sync")
EPOCH = datetime(2026, 11, 29, 6, tzinfo=UTC)
Planted = tuple[str, str]
"""What a fact is about, and its value."""


def sentence(rng: random.Random) -> str:
    words = rng.choices(WORDS, k=rng.randint(6, 18))
    return " ".join(words).capitalize() + rng.choice((".", ".", ".", "?", ";"))


def prose(rng: random.Random, chars: int) -> str:
    """English, about so many characters, in one paragraph."""
    return _filled(lambda: sentence(rng), chars, " ")


def _filled(piece: Callable[[], str], chars: int, between: str) -> str:
    found: list[str] = []
    size = 0
    while size < chars:
        found.append(piece())
        size += len(found[-1]) + len(between)
    return between.join(found)


def note(rng: random.Random, chars: int, planted: Planted | None) -> str:
    def paragraph() -> str:
        return prose(rng, rng.randint(120, 500)) + "\n"

    lines = _filled(paragraph, chars, "\n").split("\n")
    return _planted(rng, lines, planted and f"For the record, {planted[0]} is {planted[1]}.")


def log(rng: random.Random, chars: int, planted: Planted | None) -> str:
    at = EPOCH + timedelta(seconds=rng.randint(0, 80_000))
    lines: list[str] = []
    size = 0
    while size < chars:
        at += timedelta(milliseconds=rng.randint(3, 9_000))
        level = rng.choices(("INFO", "DEBUG", "WARN", "ERROR"), (70, 15, 10, 5))[0]
        what = " ".join(rng.choices(WORDS, k=rng.randint(3, 7)))
        line = (
            f"{at.isoformat(timespec='milliseconds')} {level} {rng.choice(PARTS)} req={rng.getrandbits(48):012x} "
            f"{what} status={rng.choice((200, 200, 204, 404, 500))} ms={rng.randint(1, 4000)}"
        )
        lines.append(line)
        size += len(line) + 1
    return _planted(rng, lines, planted and f"{at.isoformat(timespec='milliseconds')} INFO {planted[0]} = {planted[1]}")


def records(rng: random.Random, chars: int, planted: Planted | None) -> str:
    """JSON, indented, one object a few lines."""
    rows: list[dict[str, object]] = []
    while len(rows) * 150 < chars:
        rows.append(
            {
                "id": rng.randint(10_000, 999_999), "name": f"{rng.choice(WORDS)} {rng.choice(WORDS)}",
                "part": rng.choice(PARTS), "amount": rng.randint(1, 90_000), "open": rng.random() < 0.5,
                "tags": rng.sample(WORDS, 2),
            }
        )  # fmt: skip
    if planted:
        rows.insert(rng.randrange(len(rows) + 1), {planted[0]: planted[1]})
    return json.dumps(rows, indent=1)


def code(rng: random.Random, chars: int, planted: Planted | None) -> str:
    def function() -> str:
        name, one, two = rng.sample(WORDS, 3)
        other = rng.choice(WORDS)
        return (
            f"def {name}_{one}({two}: int, limit: int = {rng.randint(1, 99)}) -> list[int]:\n"
            f'    """{sentence(rng)}"""\n'
            f"    {other}s: list[int] = []\n"
            f"    for number in range({two}):\n"
            f"        if number % {rng.randint(2, 9)} == 0 and len({other}s) < limit:\n"
            f"            {other}s.append(number * {rng.randint(2, 40)})\n"
            f"    return {other}s\n\n"
        )

    return _planted(rng, _filled(function, chars, "\n").split("\n"), planted and f"# {planted[0]} is {planted[1]}")


def chinese(rng: random.Random, chars: int, planted: Planted | None) -> str:
    def line() -> str:
        return "".join(rng.choices(CHINESE, k=rng.randint(5, 14))) + rng.choice("。。，；")

    lines = [
        _filled(line, rng.randint(60, 200), "") for _ in range(max(1, chars // 130))
    ]  # a character is three bytes, and more of a token than a letter is
    return _planted(rng, lines, planted and f"{planted[0]} 是 {planted[1]}。")


def _planted(rng: random.Random, lines: list[str], fact: str | None) -> str:
    if fact:
        lines.insert(rng.randrange(len(lines) + 1), fact)
    return "\n".join(lines) + "\n"


Writer = Callable[[random.Random, int, "Planted | None"], str]
KINDS: dict[str, tuple[Writer, str, float]] = {
    "notes": (note, "md", 0.30),
    "logs": (log, "log", 0.20),
    "data": (records, "json", 0.20),
    "src": (code, "py", 0.15),
    "zh": (chinese, "md", 0.15),
}
"""Folder, which is the kind, to writer, ending and share."""


def subjects(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Facts without end, no two about the same: (subject, value). The last word of a subject names its thing."""
    names = ("Kestrel", "Osprey", "Merlin", "Heron", "Plover", "Curlew", "Avocet", "Dunlin", "Siskin", "Linnet")
    what = ("the settling code", "the release number", "the batch mark", "the locker key", "the permit number")
    seen: set[str] = set()
    while True:
        subject = f"{rng.choice(what)} of {rng.choice(names)}-{rng.randint(2, 99)}"
        thing = subject.rpartition(" ")[2]
        if thing not in seen:
            seen.add(thing)
            letters = "".join(rng.choices("BCDFGHJKLMNPQRSTVWXZ", k=2))
            yield subject, f"{letters}{rng.randint(1000, 9999)}-{rng.choice(('BLUE', 'AMBER', 'SLATE', 'IVORY'))}"
