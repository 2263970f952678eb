"""The one way out of a run's network: a socket that listens inside and is answered by the run's supervisor outside.

A socket stays in the network that it was made in. So a helper steps into the run's, opens it there, and hands it out:
nothing of this host's network is ever inside, and no program of ours runs there.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
from typing import NoReturn

from shared.sandbox.box import PROXY_PORT
from shared.sandbox.enter import is_root

_GET_OWNER = 0xB701  # NS_GET_USERNS (linux/nsfs.h)
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000


def listen_inside(pid: int) -> socket.socket:
    """Listens at PROXY_PORT in the network of the process `pid`. Raises OSError. Only where this process has one
    thread: it forks."""
    ours, theirs = socket.socketpair()
    helper = os.fork()
    if helper == 0:
        _step_inside(pid, theirs)
    theirs.close()
    with ours:
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(helper, 0)
    if not fds:
        raise OSError("the network of the run cannot be entered")
    return socket.socket(fileno=fds[0])


def _step_inside(pid: int, back: socket.socket) -> NoReturn:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        if not is_root():  # whoever made the users of that network may do there what root may
            _checked(libc.setns(fcntl.ioctl(network, _GET_OWNER), _NEW_USER))
        _checked(libc.setns(network, _NEW_NET))
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
            door.bind(("0.0.0.0", PROXY_PORT))  # noqa: S104 - all that there is in that network is its loopback
            door.listen(64)
            socket.send_fds(back, [b"x"], [door.fileno()])
    finally:
        os._exit(0)


def _checked(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
