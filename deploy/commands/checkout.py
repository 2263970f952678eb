"""Owns what the commands that need a whole checkout share: where it is, and an environment without a provider's key."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
_KEYS = re.compile(
    r"_API_(KEY|TOKEN)$|_AUTH_TOKEN$"
    r"|^(ANTHROPIC|OPENAI|AZURE_OPENAI|AWS|GOOGLE|GEMINI|MISTRAL|GROQ|OPENROUTER|DEEPSEEK|XAI|COHERE|TOGETHER)_"
    r"|^NIGHTSHIFT_(PROVIDER_|MODEL$|TOKEN$|URL$)"
)


def without_keys(source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """No run of tests or benchmarks may reach a real model, whatever the caller's shell holds."""
    return {name: value for name, value in source.items() if not _KEYS.search(name)}


def become(words: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Another Python program in our place, in the checkout: its output, signals and exit code are ours."""
    os.chdir(ROOT)
    os.execve(words[0], words, {**environment, "PYTHONPATH": str(ROOT)})  # noqa: S606 - a list, and no shell


def run_script(script: Path, arguments: list[str]) -> int:
    """A program of the tests in our place, with no key to see."""
    if not script.exists():
        print(f"This is part of a whole checkout, and {script} is not here.", file=sys.stderr)
        return 1
    return become([sys.executable, str(script), *from_here(arguments)], without_keys())


def from_here(arguments: list[str]) -> list[str]:
    """Paths given from the caller's folder still mean the same once we work in the checkout."""
    return [str(Path(word).absolute()) if _is_path(word) else word for word in arguments]


def _is_path(word: str) -> bool:
    return not word.startswith("-") and Path(word.partition("::")[0]).exists() and Path.cwd() != ROOT
