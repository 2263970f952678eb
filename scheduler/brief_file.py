"""Writes a brief to disk whole or not at all, and tells what stands there afterwards by its digest."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path


def write(path: Path, text: str) -> str:
    """Write `text` to `path`, flushed, and read it back. Returns `<path> sha256:<digest>`. Raises OSError.

    The folder itself is made; its parent must be there, so that an unmounted disk is a failure and not a new folder.
    """
    path.parent.mkdir(exist_ok=True)
    data = text.encode("utf-8", "replace")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _flush_folder(path.parent)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != hashlib.sha256(data).hexdigest():
        raise OSError(f"what stands in {path} is not what was written")
    return f"{path} sha256:{digest}"


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
