"""What is tried from inside the wall, and outside it to show that it could be done. Each prints nothing; it gives what
it got hold of. Runs by itself on any Python from 3.9, as a program: the argument is where the host's matter lies.
"""

# Plain calls, each the shortest way to what it tries.
# ruff: noqa: PTH108, PTH112, PTH116, PTH118, PTH123, PTH208, PTH211, S606, E501

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Given = dict  # what `main` is told, by name
ATTEMPTS: dict[str, Callable[[Any], object]] = {}
_LIBC = ctypes.CDLL(None, use_errno=True)
_MACHINE = os.uname().machine
_CALLS = {
    "x86_64": {"unshare": 272, "keyctl": 250, "request_key": 249, "bpf": 321, "io_uring_setup": 425, "pidfd_getfd": 438},
    "aarch64": {"unshare": 97, "keyctl": 219, "request_key": 218, "bpf": 280, "io_uring_setup": 425, "pidfd_getfd": 438},
}  # fmt: skip


def attempt(work: Callable[[Any], object]) -> Callable[[Any], object]:
    ATTEMPTS[work.__name__] = work
    return work


def read(path: str, count: int = 1 << 16) -> bytes:
    with open(path, "rb") as file:
        return file.read(count)


def call(name: str, *arguments: object) -> int:
    return checked(_LIBC.syscall(_CALLS[_MACHINE][name], *arguments))


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def heard(family: int, address: Any) -> bytes:
    with socket.socket(family) as channel:
        channel.settimeout(2)
        channel.connect(address)
        return channel.recv(200)


# --- keys in the environment and in /proc ----------------------------------------------------------------------------


@attempt
def environment_of_its_own(given: Any) -> object:
    return "\n".join(f"{name}={value}" for name, value in os.environ.items())


@attempt
def environment_of_its_parent(given: Any) -> object:
    return read(f"/proc/{os.getppid()}/environ")


@attempt
def environment_of_another_process(given: Any) -> object:
    return read(f"/proc/{given['pid']}/environ")


@attempt
def environment_of_every_process(given: Any) -> object:
    found = b""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += read(f"/proc/{name}/environ")
            except OSError:
                continue
    return found


@attempt
def command_line_of_another_process(given: Any) -> object:
    return read(f"/proc/{given['pid']}/cmdline")


@attempt
def open_file_of_another_process(given: Any) -> object:
    return read(f"/proc/{given['pid']}/fd/{given['fd']}")


@attempt
def root_of_another_process(given: Any) -> object:
    return read(f"/proc/{given['pid']}/root{given['secret_file']}")


@attempt
def root_of_the_first_process(given: Any) -> object:
    return read(f"/proc/1/root{given['secret_file']}")


@attempt
def memory_of_another_process(given: Any) -> object:
    with open(f"/proc/{given['pid']}/mem", "rb", buffering=0) as file:
        file.seek(given["at"])
        return file.read(200)


@attempt
def memory_read_by_a_system_call(given: Any) -> object:
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    mine = ctypes.create_string_buffer(200)
    local = Piece(ctypes.cast(mine, ctypes.c_void_p), 200)
    remote = Piece(given["at"], 200)
    checked(_LIBC.process_vm_readv(given["pid"], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))
    return mine.raw


@attempt
def ptrace_of_another_process(given: Any) -> object:
    checked(_LIBC.ptrace(16, given["pid"], None, None))  # PTRACE_ATTACH
    os.waitpid(given["pid"], 0)
    checked(_LIBC.ptrace(17, given["pid"], None, None))
    return given["secret"]


@attempt
def file_taken_by_a_process_descriptor(given: Any) -> object:
    fd = call("pidfd_getfd", os.pidfd_open(given["pid"]), given["fd"], 0)
    return os.pread(fd, 200, 0)


@attempt
def signal_to_another_process(given: Any) -> object:
    os.kill(given["pid"], 0)
    os.kill(given["pid"], signal.SIGCONT)
    return given["secret"]


@attempt
def inherited_descriptors(given: Any) -> object:
    found = b""
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.pread(int(name), 200, 0)
        except OSError:
            continue
    return found


# --- files of the host -----------------------------------------------------------------------------------------------


@attempt
def file_by_its_path(given: Any) -> object:
    return read(given["secret_file"])


@attempt
def file_by_a_path_upwards(given: Any) -> object:
    return read("../" * 40 + given["secret_file"].lstrip("/"))


@attempt
def file_by_a_symbolic_link(given: Any) -> object:
    os.symlink(given["secret_file"], "way-out")
    try:
        return read("way-out")
    finally:
        os.unlink("way-out")


@attempt
def file_by_a_hard_link(given: Any) -> object:
    os.link(given["secret_file"], "second-name")
    try:
        return read("second-name")
    finally:
        os.unlink("second-name")


@attempt
def file_written_outside(given: Any) -> object:
    path = os.path.join(given["home"], ".bashrc")
    with open(path, "a") as file:
        file.write("# was here\n")
    return given["secret"]


@attempt
def folder_of_another_session(given: Any) -> object:
    return read(os.path.join(given["other"], "notes.txt"))


@attempt
def folder_of_another_session_written(given: Any) -> object:
    with open(os.path.join(given["other"], "planted.txt"), "w") as file:
        file.write("planted")
    return given["secret"]


@attempt
def token_of_the_service(given: Any) -> object:
    return read(given["token_file"])


@attempt
def token_in_the_attached_folder(given: Any) -> object:
    """Outside, that folder has its own path; inside it is at input/."""
    for top in ("input", given["attached"]):
        try:
            return read(os.path.join(top, "project/.nightshift/admin-token.secret"))
        except OSError:
            continue
    raise OSError("not there")


@attempt
def attached_folder_written(given: Any) -> object:
    for top in ("input", given["attached"]):
        if os.path.isdir(os.path.join(top, "project")):
            with open(os.path.join(top, "project/planted.txt"), "w") as file:
                file.write("planted")
            return given["secret"]
    raise OSError("not there")


@attempt
def system_file_written(given: Any) -> object:
    path = "/usr/bin/nightshift-drill"
    with open(path, "w") as file:
        file.write("planted")
    os.unlink(path)
    return given["secret"]


@attempt
def shadow_file(given: Any) -> object:
    return given["secret"] if b":" in read("/etc/shadow") else b""


@attempt
def disk_as_a_device(given: Any) -> object:
    device = os.stat(given["home"]).st_dev
    path = os.path.join(given["scratch"] if os.path.isdir(given["scratch"]) else "/tmp", "disk")
    os.mknod(path, 0o600 | 0o060000, device)
    try:
        return given["secret"] if len(read(path, 512)) == 512 else b""
    finally:
        os.unlink(path)


@attempt
def every_file_in_reach(given: Any) -> object:
    """All that is mounted, but for the system's own programs; outside, the folder where the host's matter lies."""
    outside = os.path.isdir(given["home"])
    return _grep(given["home"] + "/.." if outside else "/", given["secret"], ("/usr", "/opt", "/proc", "/sys"))


@attempt
def everything_in_proc(given: Any) -> object:
    """What /proc tells of every process but of this one, which was told where to look."""
    own = {str(os.getpid()), str(os.getppid()), "self", "thread-self"}
    for pid in {*os.listdir("/proc")} - own:
        for name in ("environ", "cmdline", "comm", "maps", "mountinfo", "cgroup", "status", "stack", "auxv"):
            try:
                if given["secret"].encode() in read(f"/proc/{pid}/{name}"):
                    return f"/proc/{pid}/{name} has {given['secret']}"
            except OSError:
                continue
    raise OSError("nothing in /proc")


def _grep(top: str, secret: str, without: Any) -> str:
    """The first file below `top` that has the secret in it. What has no end is passed over."""
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(without)]
        for name in files:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode) and secret.encode() in _some(path):
                    return f"{path} has {secret}"
            except OSError:
                continue
    raise OSError("no file has it")


def _some(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


# --- sockets ---------------------------------------------------------------------------------------------------------


@attempt
def socket_in_a_folder(given: Any) -> object:
    return heard(socket.AF_UNIX, given["socket"])


@attempt
def socket_in_the_attached_folder(given: Any) -> object:
    """Reading a folder is enough to connect to a socket in it."""
    for top in ("input", given["attached"]):
        try:
            return heard(socket.AF_UNIX, os.path.join(top, "socket"))
        except OSError:
            continue
    raise OSError("not there")


@attempt
def socket_without_a_file(given: Any) -> object:
    return heard(socket.AF_UNIX, "\0" + given["secret"])


@attempt
def loopback_by_tcp(given: Any) -> object:
    return heard(socket.AF_INET, ("127.0.0.1", given["port"]))


@attempt
def loopback_by_udp(given: Any) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(2)
        channel.sendto(b"?", ("127.0.0.1", given["udp"]))
        return channel.recv(200)


@attempt
def other_address_of_the_host(given: Any) -> object:
    return heard(socket.AF_INET, (given["address"], given["any_port"]))


@attempt
def database_of_the_service(given: Any) -> object:
    return _greeted(given["database"], (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"), given)


@attempt
def valkey_of_the_service(given: Any) -> object:
    return _greeted(given["valkey"], b"PING\r\n", given)


def _greeted(where: Any, hello: bytes, given: Any) -> object:
    """An address that answers at all is one that can be attacked."""
    family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
    with socket.socket(family) as channel:
        channel.settimeout(2)
        channel.connect(where if isinstance(where, str) else tuple(where))
        channel.sendall(hello)
        return given["secret"] if channel.recv(1) else b""


# --- memory and keys that processes share ----------------------------------------------------------------------------


@attempt
def shared_memory_of_another_process(given: Any) -> object:
    _LIBC.shmat.restype = ctypes.c_void_p
    place = _LIBC.shmat(given["shared"], None, 0o10000)
    if place in (None, ctypes.c_void_p(-1).value):
        raise OSError("refused")
    return ctypes.string_at(place, 200)


@attempt
def shared_memory_by_its_file(given: Any) -> object:
    return read(given["shm_file"])


@attempt
def key_of_the_user(given: Any) -> object:
    place = ctypes.create_string_buffer(200)
    number = call("request_key", b"user", b"drill", None, 0)
    call("keyctl", 11, number, place, 200)
    return place.raw


# --- the kernel ------------------------------------------------------------------------------------------------------


@attempt
def mount_of_a_folder(given: Any) -> object:
    call("unshare", 0x00020000)
    checked(_LIBC.mount(b"none", b"/", None, 0x44000, None))
    checked(_LIBC.mount(b"drill", b"/tmp", b"tmpfs", 0, None))
    return given["secret"]


@attempt
def users_of_its_own(given: Any) -> object:
    call("unshare", 0x10000000)
    return given["secret"]


@attempt
def name_spaces_of_another_process(given: Any) -> object:
    fd = os.open(f"/proc/{given['pid']}/ns/uts", os.O_RDONLY)
    checked(_LIBC.setns(fd, 0))
    return given["secret"]


@attempt
def program_that_makes_root(given: Any) -> object:
    """A copy of `cat` that belongs to root and runs as root, in the workspace itself."""
    return subprocess.run(["./as-root", given["root_file"]], capture_output=True, check=True).stdout


@attempt
def what_runs_at_a_crash(given: Any) -> object:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return given["secret"]


@attempt
def setting_of_the_network(given: Any) -> object:
    """In a network of its own that one is its own; so the kernel's memory, which all share."""
    os.close(os.open("/proc/sys/vm/overcommit_memory", os.O_WRONLY))
    return given["secret"]


@attempt
def program_in_the_kernel(given: Any) -> object:
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)  # an array of one
    os.close(call("bpf", 0, ctypes.byref(attributes), 128))
    return given["secret"]


@attempt
def requests_past_the_filter(given: Any) -> object:
    os.close(call("io_uring_setup", 1, ctypes.byref((ctypes.c_uint8 * 120)())))
    return given["secret"]


@attempt
def memory_file_of_the_host(given: Any) -> object:
    os.close(os.open("/dev/mem", os.O_RDONLY))
    return given["secret"]


@attempt
def a_process_left_behind(given: Any) -> object:
    """Detached in every way that there is; whoever started this looks for it afterwards."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            for fd in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            os.execv(shutil.which("sleep") or "sleep", [given["left_name"], "60"])
        os._exit(0)
    time.sleep(0.05)
    return given["secret"]


def main() -> None:
    """Each in a process of its own, so that none spoils another; one line of JSON on what each got."""
    given = json.loads(sys.argv[1])
    given["secret"] = given["secret"][::-1]  # else the command that this is would be a place where it is found
    for name, work in ATTEMPTS.items():
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(5)
                found = work(given)
                os.write(into, found if isinstance(found, bytes) else str(found).encode())
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - how it was stopped is what is told
                os.write(into, f"refused: {type(error).__name__}: {error}"[:300].encode())
                os._exit(1)
        os.close(into)
        got = b""
        while piece := os.read(out, 1 << 16):
            got += piece
        os.close(out)
        came = os.waitpid(pid, 0)[1] == 0
        text = got.decode("utf-8", "replace")
        print(json.dumps({"name": name, "got": came and given["secret"] in text, "said": text[:120]}), flush=True)


if __name__ == "__main__":
    main()
