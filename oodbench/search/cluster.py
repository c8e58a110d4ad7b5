"""The Ray cluster of a run: found or started, and asked what it has."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from oodbench.errors import Unreachable
from oodbench.search.own import all_ended, apart, few_processes, own_folder, own_settings, read_settings_again
from oodbench.texts import redact

CONNECT_SECONDS = 5


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """A Ray cluster to work on: the one at `address`, the one this process is connected to, or one of our own."""
    _quieten()
    if address is not None:  # a cluster of the user keeps its own settings
        _check_reachable(address)
        with _connected(address):
            yield
    elif _is_connected():
        yield
    else:
        with _own():
            yield


def _is_connected() -> bool:
    if "ray" not in sys.modules:
        return False
    import ray

    return ray.is_initialized()


@contextlib.contextmanager
def _connected(address: str) -> Iterator[None]:
    import ray

    if ray.is_initialized():
        _check_same(address, ray.get_runtime_context().gcs_address)
        yield
        return
    _start(address=address)
    try:
        yield
    finally:
        _shut_down()


@contextlib.contextmanager
def _own() -> Iterator[None]:
    """One that starts and ends with the run."""
    with own_folder() as folder:
        try:
            with own_settings(folder), apart(), few_processes():
                read_settings_again()
                _start(address="local", include_dashboard=False, _temp_dir=str(folder / "ray"))
            yield
        finally:
            if "ray" in sys.modules:  # otherwise it was stopped before
                with all_ended(folder):
                    _shut_down()
                read_settings_again()


def _check_same(address: str, connected: str) -> None:
    """Whether the address is of the cluster that this process is connected to, as far as ports tell."""
    port = address.rpartition(":")[2]
    if "://" not in address and port.isdigit() and port != connected.rpartition(":")[2]:
        raise Unreachable(
            f"address={redact(address)}: this process is connected to the Ray cluster at {redact(connected)} already.\n"
            "Call ray.shutdown() before, or leave out the address."
        )


def _start(**options: Any) -> None:
    import ray

    # ray.init mostly waits for its processes: meanwhile import what comes next
    importing = threading.Thread(target=importlib.import_module, args=("ray.tune",), daemon=True)
    importing.start()
    try:
        with _signals_kept():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises no narrower one where its processes take too long
        said = redact(" ".join(str(error).split()))
        if options["address"] == "local":
            raise Unreachable(
                f"Ray does not start on this machine: {said}\n"
                "Give the same command again; if that does not help, see if memory, disk and cores are free."
            ) from None
        raise Unreachable(
            f"Ray at {redact(options['address'])} does not answer: {said}\n"
            "Start it with `ray start --head`, or leave out --address."
        ) from None
    importing.join()  # modules of ray.tune import each other: another thread would find them half-made


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """From its start on, Ray ends the process without a word at SIGTERM; who has a handler of their own keeps it."""
    from ray._private import utils

    handler, set_handler = signal.getsignal(signal.SIGTERM), utils.set_sigterm_handler
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    utils.set_sigterm_handler = lambda handler: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = set_handler
        signal.signal(signal.SIGTERM, handler)  # below Python, Ray has put its own in front, which aborts after 3 s


def _shut_down() -> None:
    import ray

    with _signals_kept():
        ray.shutdown()


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
