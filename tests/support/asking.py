"""How a warm process is asked for; imports nothing that takes time."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence


def ask(
    path: str,
    module: str,
    arguments: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    descriptors: Sequence[int],
) -> socket.socket:
    """A connection to the process that becomes `python -m MODULE ARGUMENTS`; it says its number, then its exit code."""
    request = {"module": module, "arguments": list(arguments), "cwd": cwd, "environment": dict(environment)}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    socket.send_fds(connection, [json.dumps(request).encode()], list(descriptors))
    return connection
