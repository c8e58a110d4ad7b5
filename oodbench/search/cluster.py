"""The Ray cluster of a run: found or started, and asked what it has."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from oodbench.errors import Unreachable
from oodbench.texts import redact

CONNECT_SECONDS = 5
ONLY_HERE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """A Ray cluster to work on: the one at `address`, the one this process is connected to, or one of our own."""
    _quieten()
    if address is not None:
        _check_reachable(address)
    else:  # our own, for the length of a run; a cluster of the user keeps its own settings
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with _kept_to_this_machine() if address is None else contextlib.nullcontext():
        ours = _connect(address)
    if not ours:
        yield
        return
    import ray

    try:
        yield
    finally:
        ray.shutdown()


def _connect(address: str | None) -> bool:
    """Whether the connection is of our making; there may be one."""
    import ray

    if ray.is_initialized():
        return False
    # ray.init mostly waits for its processes: meanwhile import what comes next
    importing = threading.Thread(target=importlib.import_module, args=("ray.tune",), daemon=True)
    importing.start()
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where, said = redact(address or "this machine"), redact(" ".join(str(error).split()))
        raise Unreachable(
            f"Ray at {where} does not answer: {said}\nStart it with `ray start --head`, or leave out --address."
        ) from None
    importing.join()  # modules of ray.tune import each other: another thread would find them half-made
    return True


@contextlib.contextmanager
def _kept_to_this_machine() -> Iterator[None]:
    """On Linux, Ray listens to the whole network unless told that there are no other machines. It is told while it is
    imported and started; what else this process starts, such as a node of a cluster, is not."""
    if ONLY_HERE in os.environ:
        yield
        return
    os.environ[ONLY_HERE] = "0"
    try:
        yield
    finally:
        del os.environ[ONLY_HERE]


def resolve_device(device: str, address: str | None) -> str:
    """`auto`, `cpu` or `cuda` as what the workers will use."""
    if device == "cpu":
        return "cpu"
    if address is not None:
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        has_gpu = resources.get("GPU", 0) > 0
    else:
        # torch takes seconds to import: it is asked only where there may be a GPU
        has_gpu = (device == "cuda" or _has_gpu_driver()) and _torch_finds_gpu()
    if device == "cuda" and not has_gpu:
        raise Unreachable("--device cuda: there is no CUDA GPU here.\nUse --device auto or --device cpu.")
    return "cuda" if has_gpu else "cpu"


def _has_gpu_driver() -> bool:
    return any(shutil.which(tool) for tool in ("nvidia-smi", "rocm-smi"))


def _torch_finds_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _check_reachable(address: str) -> None:
    if address in ("auto", "local"):
        return
    try:
        parts = urlsplit(address if "://" in address else f"ray://{address}")
        host, port = parts.hostname, parts.port
        if host is None:
            raise ValueError
        with socket.create_connection((host, port or 10001), timeout=CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") in ("0", ""):
                _check_speaks_grpc(connection)
    except ValueError:
        raise Unreachable(
            f"--address {redact(address)!r} is not HOST:PORT.\nFor example --address 127.0.0.1:6379."
        ) from None
    except OSError as error:
        raise Unreachable(
            f"no Ray cluster answers at {redact(address)}: {error}.\n"
            "Start one with `ray start --head`, or leave out --address."
        ) from None


def _check_speaks_grpc(connection: socket.socket) -> None:
    """Ray waits without end for a host that accepts connections and says nothing; a gRPC server greets at once."""
    connection.settimeout(CONNECT_SECONDS)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    greeting = connection.recv(9)
    if len(greeting) < 4 or greeting[3] != 4:  # the type of an HTTP/2 settings frame
        raise OSError("a server that is not Ray answers there")


def _quieten() -> None:
    for name, value in {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_RESULT_BUFFER_LENGTH": "0",
        "TUNE_GLOBAL_CHECKPOINT_S": "1000000",  # finished packs are on our disk; Tune's own state is not used
    }.items():
        os.environ.setdefault(name, value)
