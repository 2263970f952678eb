"""A small program played by the supervisor's tests. Run as `python played.py EVENTS NAME [HABIT…]`.

It appends `start NAME` and `stop NAME` to EVENTS, prints its ready line and waits. Habits: `deaf` ignores SIGTERM,
`brief` ends right after it is ready, `refuses` ends with 78, `fails` ends with 3, `parent` leaves a child behind.
"""

import os
import signal
import subprocess
import sys


def note(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def leave(_number: int, _frame: object) -> None:
    sys.exit(0)


def main() -> int:
    events, name, *habits = sys.argv[1:]
    note(events, f"start {name}")
    if "refuses" in habits:
        sys.stderr.write("NIGHTSHIFT_MODEL: not a model\n")
        return 78
    if "fails" in habits:
        sys.stderr.write("could not write: No space left on device\n")
        return 3
    if "deaf" in habits:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, leave)
    if "parent" in habits:
        left = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        note(events, f"child {left.pid}")
    if "brief" in habits:
        print(f"played {name} ready", flush=True)
        return 1
    try:
        print(f"played {name} ready", flush=True)  # who waits for this line may end it right away
        while True:
            signal.pause()
    finally:
        note(events, f"stop {name}")


if __name__ == "__main__":
    sys.exit(main())
