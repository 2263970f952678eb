"""A process of this host that holds a secret wherever a process can hold one, and serves it to whoever asks.

Run as a program: prints what it has as one line of JSON, and stays until its input ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

SIZE = 4096
_ADD_KEY = {"x86_64": 248, "aarch64": 217}
_USER_KEYRING = -4


def main() -> None:
    secret = os.environ["DRILL_SECRET"]
    folder = Path(sys.argv[1])
    file = Path(sys.argv[2]).open()  # noqa: SIM115 - held open as long as this process lives
    held = ctypes.create_string_buffer(secret.encode(), SIZE)
    address = _listen(socket.AF_INET, ("127.0.0.1", 0), secret)
    any_address = _listen(socket.AF_INET, ("0.0.0.0", 0), secret)  # noqa: S104 - an address that is not the loopback's
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    threading.Thread(target=_echo, args=(udp, secret), daemon=True).start()
    _listen(socket.AF_UNIX, str(folder / "socket"), secret)
    _listen(socket.AF_UNIX, f"\0{secret}", secret)
    print(
        json.dumps(
            {
                "pid": os.getpid(),
                "fd": file.fileno(),
                "at": ctypes.addressof(held),
                "port": address[1],
                "any_port": any_address[1],
                "udp": udp.getsockname()[1],
                "shared": _shared(secret),
                "key": _key(secret),
            }
        ),
        flush=True,
    )
    sys.stdin.read()


def _listen(family: int, address: Any, secret: str) -> tuple[str, int]:
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(address)
    server.listen(16)

    def serve() -> None:
        while True:
            peer, _ = server.accept()
            with peer:
                peer.sendall(secret.encode())

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname() if family == socket.AF_INET else ("", 0)


def _echo(udp: socket.socket, secret: str) -> None:
    while True:
        _, peer = udp.recvfrom(100)
        udp.sendto(secret.encode(), peer)


def _shared(secret: str) -> int:
    """A segment of System V shared memory with the secret in it, which goes when it is let go."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, SIZE, 0o1600)
    place = libc.shmat(number, None, 0)
    ctypes.memmove(place, secret.encode(), len(secret))
    return number


def _key(secret: str) -> int:
    """The secret as a key of this user, -1 where the kernel keeps none."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = _ADD_KEY.get(os.uname().machine)
    data = secret.encode()
    return -1 if number is None else int(libc.syscall(number, b"user", b"drill", data, len(data), _USER_KEYRING))


if __name__ == "__main__":
    main()
