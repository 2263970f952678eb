"""Programs that start the command that their words end with, after options and a number of words of their own."""

from __future__ import annotations

from shared.gate.options import names

_TABLE = """
0 |  | nohup, setsid, command, builtin, coproc, setpriv, numactl, unbuffer, rlwrap, chronic, fakeroot
0 |  | eatmydata, torsocks, firejail, dbus-run-session, valgrind, ccache, distcc, catchsegv, systemd-inhibit
0 |  | poetry run, pipenv run, pdm run, hatch run, rye run, bundle exec, mise exec
0 |  | dotenv run, heroku run, op run, doppler run, start-stop-daemon, entr, busybox, toybox, wine
0 |  | linux32, linux64, prlimit
0 | -n --adjustment | nice
0 | -c -n --class --classdata | ionice
1 | -s -k --signal --kill-after | timeout, gtimeout
0 | -i -o -e --input --output --error | stdbuf
0 | -f -o --format --output | time
0 | -f -o | gtime
0 | -a | exec
0 | -u -C | doas
0 | --user | pkexec
1 |  | chroot, taskset, chrt, faketime, direnv exec, aws-vault exec, setarch
0 | -S -G -R -w --setuid --setgid --root --wd | unshare
0 | -t --target -S -G | nsenter
0 | -f | proxychains, proxychains4
0 | -n -s -e -f -p -w | xvfb-run
0 | -t -w | caffeinate
0 | -o -e -p -s -u -E | strace
0 | -o -e -p -s -u | ltrace
0 | -u -p -t --unit --property --slice --uid --gid -H -M | systemd-run
0 | --with --python -p --package --directory --project --extra --group | uv run
0 | -n -p --name --prefix | conda run
0 | -n -p | micromamba run
0 | -u -g -G | runuser
0 | -w -m -M -r | hyperfine
0 | -e -o | perf stat, perf record
0 | -j | sem
0 | -g | cgexec
0 | -n | choom
0 | --bind --ro-bind --dev --proc --tmpfs --dev-bind --setenv --unsetenv --chdir --symlink | bwrap
0 | -c -e -o -p -l | daemonize
0 | -u | sudoedit
0 | --library-path --preload --argv0 | ld.so
"""
"""A line: how many words stand before the command; options that take the next word; the programs."""


def _read_table() -> dict[str, tuple[frozenset[str], int]]:
    found: dict[str, tuple[frozenset[str], int]] = {}
    for line in _TABLE.strip().splitlines():
        before, options, programs = (part.strip() for part in line.split("|"))
        found |= {name.strip(): (names(options), int(before)) for name in programs.split(",")}
    return found


PLAIN = _read_table()
