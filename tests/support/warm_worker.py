"""In place of Ray's own script that starts a worker: a fork of a process that has imported the libraries becomes it.

Ray starts a process for every worker, which imports ray twice, then torch and Tune: three seconds of a core. This one
imports nothing but what it needs to ask for a fork; it stays until the worker has ended, and ends as it ended.
"""

from __future__ import annotations

import json
import os
import sys

from asking import ask

SOCKET = "OODBENCH_WARM_SOCKET"
WORKER = "ray._private.workers.default_worker"


def start() -> int:
    options = [argument for argument in sys.argv[1:] if argument.startswith(("--serialized-runtime-env", "--language"))]
    arguments = [argument for argument in sys.argv[1:] if argument not in options]
    context = next((option.split("=", 1)[1] for option in options if "runtime-env-context" in option), "") or "{}"
    environment = {**os.environ, **json.loads(context).get("env_vars", {})}
    assert arguments[0].endswith("default_worker.py"), sys.argv
    directory = os.environ.get("PWD", "/")
    connection = ask(os.environ[SOCKET], WORKER, arguments[1:], directory, environment, (1, 2))
    connection.recv(32)  # its number
    return int(connection.recv(32) or 1)


if __name__ == "__main__":
    sys.exit(start())
