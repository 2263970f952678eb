"""A supervisor over played programs, in a process of its own: `python -m tests.local.rig HOME NAME:WAVE[:HABIT…]…`.

`postgres` and `valkey` among the names are the real servers. It writes HOME/stack.json as `./dev up` does.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from deploy.local import postgres, valkey
from deploy.local.binaries import find_postgres, find_valkey
from deploy.local.explain import StackError
from deploy.local.home import Home, locked, open_home, write_private
from deploy.local.logs import Terminal
from deploy.local.program import Program, of_server
from deploy.local.spawn import clean_environment, unprivileged
from deploy.local.supervisor import Supervisor

PLAYED = Path(__file__).with_name("played.py")


def program(home: Home, words: str) -> Program:
    name, wave, *habits = words.split(":")
    if name == "postgres":
        return of_server(postgres.prepare(home, find_postgres(), identity=unprivileged(), flush=False), int(wave))
    if name == "valkey":
        return of_server(valkey.prepare(home, find_valkey()), int(wave))
    command = (sys.executable, "-I", "-S", str(PLAYED), str(home.root / "events"), name, *habits)
    return Program(
        name=name,
        role=name.partition("-")[0],
        wave=int(wave),
        command=lambda: command,
        folder=home.root,
        environment=clean_environment,
        ready_line=re.compile(rf"^played {name} ready"),
    )


def keep(home: Home) -> Callable[[dict[str, list[int]], bool], None]:
    def changed(pids: dict[str, list[int]], ready: bool) -> None:
        facts = {"pids": {"supervisor": [os.getpid()], **pids}, "ready": ready}
        write_private(home.stack_file, json.dumps(facts))

    return changed


def main() -> int:
    try:
        home = open_home(Path(sys.argv[1]))
        with locked(home):
            programs = [program(home, words) for words in sys.argv[2:]]
            supervisor = Supervisor(programs, logs=home.logs, hold=home.hold, terminal=Terminal(), changed=keep(home))
            return supervisor.run()
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
