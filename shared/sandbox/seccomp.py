"""Which system calls a run is refused, as the kernel's filter: the same list whatever wall stands behind it.

Refused are those that reach past it: keys of the user, other name spaces, mounts, code in the kernel, and io_uring,
whose requests no filter sees. Sockets go where nothing else closes the network. A filter sees no memory, so what a
call points to cannot be judged; it judges numbers.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARG0 = 0, 4, 16
_X32 = 0x40000000
_NEW_USER = 0x10000000
AF_UNIX = 1

_ARCHES = MappingProxyType({"x86_64": 0xC000003E, "aarch64": 0xC00000B7})
# From each kernel's own table of numbers (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
_X86 = MappingProxyType(
    {
        "socket": 41, "clone": 56, "chroot": 161, "acct": 163, "mount": 165, "umount2": 166, "swapon": 167,
        "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176, "pivot_root": 155, "add_key": 248,
        "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313,
        "kexec_load": 246, "bpf": 321, "userfaultfd": 323, "open_tree": 428, "move_mount": 429, "fsopen": 430,
        "fsconfig": 431, "fsmount": 432, "fspick": 433, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "clone3": 435, "mount_setattr": 442, "pidfd_getfd": 438, "kexec_file_load": 320,
    }
)  # fmt: skip
_ARM = MappingProxyType(
    {
        "socket": 198, "clone": 220, "chroot": 51, "acct": 89, "mount": 40, "umount2": 39, "swapon": 224,
        "swapoff": 225, "reboot": 142, "init_module": 105, "delete_module": 106, "pivot_root": 41, "add_key": 217,
        "request_key": 218, "keyctl": 219, "unshare": 97, "perf_event_open": 241, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273,
        "kexec_load": 104, "bpf": 280, "userfaultfd": 282, "open_tree": 428, "move_mount": 429, "fsopen": 430,
        "fsconfig": 431, "fsmount": 432, "fspick": 433, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "clone3": 435, "mount_setattr": 442, "pidfd_getfd": 438, "kexec_file_load": 294,
    }
)  # fmt: skip
_NUMBERS: Mapping[str, Mapping[str, int]] = MappingProxyType({"x86_64": _X86, "aarch64": _ARM})
_JUDGED = ("socket", "clone", "clone3")


def known(machine: str | None = None) -> bool:
    """Whether this kind of machine's numbers are known here."""
    return (machine or platform.machine()) in _ARCHES


def program(*, sockets: Iterable[int] | None = (), machine: str | None = None) -> bytes:
    """The filter for this machine. `sockets`: families that may not be opened; None: no socket at all. What a pair of
    sockets is made of is not touched. Raises KeyError where `known` is false."""
    machine = machine or platform.machine()
    numbers = _NUMBERS[machine]
    refuse = _ERROR | errno.EPERM
    code = [
        *_only(_ARCHES[machine], refuse),
        (_LOAD, 0, 0, _NUMBER),
        *([(_JUMP_ABOVE, 0, 1, _X32), (_RETURN, 0, 0, refuse)] if machine == "x86_64" else []),
    ]
    for name, number in numbers.items():
        if name not in _JUDGED:
            code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    # Its flags lie in memory, unseen: a program that is told there is no such call falls back to `clone`.
    code += [(_JUMP_EQUAL, 0, 1, numbers["clone3"]), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    code += _where(numbers["clone"], [(_JUMP_BITS, 0, 1, _NEW_USER), (_RETURN, 0, 0, refuse)])
    if sockets is None:
        code += [(_JUMP_EQUAL, 0, 1, numbers["socket"]), (_RETURN, 0, 0, _ERROR | errno.EACCES)]
    else:
        closed = [(_JUMP_EQUAL, 0, 1, family) for family in sockets]
        inner = [step for jump in closed for step in (jump, (_RETURN, 0, 0, _ERROR | errno.EACCES))]
        code += _where(numbers["socket"], inner) if inner else []
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in code)


Step = tuple[int, int, int, int]


def _only(arch: int, refuse: int) -> list[Step]:
    """Of another kind of machine that this kernel can run too, every call is refused: its numbers mean other calls."""
    return [(_LOAD, 0, 0, _ARCH), (_JUMP_EQUAL, 1, 0, arch), (_RETURN, 0, 0, refuse)]


def _where(number: int, judged: list[Step]) -> list[Step]:
    """For the call `number` its first argument is judged; where nothing speaks against it, it is allowed."""
    body = [(_LOAD, 0, 0, _ARG0), *judged, (_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQUAL, 0, len(body), number), *body]
