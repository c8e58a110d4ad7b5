"""The search: packs on Ray Tune workers. The only file that imports ray.

One Tune trial is one pack. A worker gets the method, the pack and the training and validation arrays of the pack's
seeds through the object store; the result comes back with the report, so that no disk need be shared.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from oodbench.errors import Interrupted, Unreachable, one_line
from oodbench.method import Method
from oodbench.trial import Pack, PackResult, Setup
from oodbench.worker import run_pack

CONNECT_SECONDS = 5
RETRIES = 2  # of a pack whose worker died
GPU_SHARE = 0.25  # of a GPU for one pack


@dataclass(frozen=True, eq=False)
class Job:
    """A pack with all that its worker needs to run it."""

    pack: Pack
    method: Method
    setup: Setup
    data: Mapping[int, Any]  # seed -> SearchData; on the way to a worker, a reference to it in the object store


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """A Ray cluster to work on: the one at `address`, the one this process is connected to, or one of our own."""
    _quieten()
    if address is not None:
        _check_reachable(address)
    else:  # our own, for the length of a run; a cluster of the user's keeps its own ways
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
        # on Linux, Ray listens to the whole network unless told that there are no other machines
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    if ray.is_initialized():
        yield
        return
    # ray.init mostly waits for its processes: meanwhile import what comes next
    threading.Thread(target=importlib.import_module, args=("ray.tune",), daemon=True).start()
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = address or "this machine"
        raise Unreachable(
            f"Ray at {where} did not answer: {error}\nStart it with `ray start --head`, or leave out --address."
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def resolve_device(device: str, address: str | None) -> str:
    """`auto`, `cpu` or `cuda` as what the workers will use."""
    if device == "cpu":
        return "cpu"
    if address is not None:
        import ray

        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        found = resources.get("GPU", 0) > 0
    else:
        # torch takes seconds to import: it is asked only where there may be a GPU
        found = (device == "cuda" or _has_gpu_driver()) and _torch_finds_gpu()
    if device == "cuda" and not found:
        raise Unreachable("--device cuda, but there is no CUDA GPU here.\nUse --device auto or --device cpu.")
    return "cuda" if found else "cpu"


def run_jobs(jobs: Sequence[Job], on_result: Callable[[Pack, PackResult], None]) -> None:
    """Run every pack and hand each result to `on_result` in this process, as it arrives.

    A pack whose worker dies again and again comes back as failed, and the others go on.
    """
    import ray
    from ray import tune

    jobs = _sendable(jobs, on_result)
    if not jobs:
        return
    # what is the same for several packs is stored once
    stored = {
        id(data): ray.put(data) for data in {id(part): part for job in jobs for part in job.data.values()}.values()
    }
    placed = [replace(job, data={seed: stored[id(part)] for seed, part in job.data.items()}) for job in jobs]
    arrived: set[int] = set()

    class Deliver(tune.Callback):
        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict[str, Any], **_: Any) -> None:
            number = trial.config["number"]
            if number not in arrived:  # a worker that dies after its report is run again
                arrived.add(number)
                on_result(placed[number].pack, result["pack"])

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            trial.last_result.pop("pack", None)  # delivered: Tune need not keep it

        def __reduce__(self) -> tuple[type, tuple[()]]:
            return (tune.Callback, ())  # Tune saves its callbacks; this one has no state to save

    resources: dict[str, float] = {"cpu": 1}
    if any(job.setup.device == "cuda" for job in placed):
        resources["gpu"] = GPU_SHARE
    with tempfile.TemporaryDirectory(prefix="oodbench-tune-") as scratch, _silent():
        results = tune.Tuner(
            tune.with_resources(tune.with_parameters(_train, jobs=placed), resources),
            param_space={"number": tune.grid_search(list(range(len(placed))))},
            tune_config=tune.TuneConfig(reuse_actors=True),
            run_config=tune.RunConfig(
                storage_path=scratch,
                verbose=0,
                callbacks=[Deliver()],
                failure_config=tune.FailureConfig(max_failures=RETRIES),
            ),
        ).fit()
    for result in (results[index] for index in range(len(results))):
        if result.error is not None and result.config is not None:
            number = result.config["number"]
            arrived.add(number)
            on_result(placed[number].pack, _lost(placed[number], result.error))
    if len(arrived) < len(placed):
        raise Interrupted(f"stopped with {len(arrived)} of {len(placed)} packs finished.")


def _sendable(jobs: Sequence[Job], on_result: Callable[[Pack, PackResult], None]) -> list[Job]:
    """The jobs whose method can travel to a worker; the others have failed."""
    import cloudpickle

    faults: dict[int, str] = {}
    for method in {id(job.method): job.method for job in jobs}.values():
        try:
            cloudpickle.dumps(method)
        except Exception as error:
            faults[id(method)] = f"the method cannot be sent to a worker: {one_line(error)}"
    for job in jobs:
        if id(job.method) in faults:
            on_result(job.pack, _failed(job, faults[id(job.method)]))
    return [job for job in jobs if id(job.method) not in faults]


def _train(config: dict[str, Any], jobs: Sequence[Job]) -> None:
    """The Tune trainable: one pack."""
    import ray
    import torch
    from ray import tune

    from oodbench.dataset import seal_test_data
    from oodbench.pack import keep_freed_memory

    seal_test_data()
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)  # the method of an earlier pack may have changed it
    job = jobs[config["number"]]
    data = {seed: ray.get(job.data[seed]) for seed in job.pack.seeds}
    tune.report({"pack": run_pack(job.method, job.pack, data, job.setup)})


def _has_gpu_driver() -> bool:
    return any(shutil.which(tool) for tool in ("nvidia-smi", "rocm-smi"))


def _torch_finds_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _check_reachable(address: str) -> None:
    if address in ("auto", "local"):
        return
    parts = urlsplit(address if "://" in address else f"ray://{address}")
    try:
        host, port = parts.hostname, parts.port
        if host is None:
            raise ValueError
        with socket.create_connection((host, port or 10001), timeout=CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") in ("0", ""):
                _check_speaks_grpc(connection)
    except ValueError:
        raise Unreachable(f"--address {address!r} is not HOST:PORT.\nFor example --address 127.0.0.1:6379.") from None
    except OSError as error:
        raise Unreachable(
            f"no Ray cluster answers at {address}: {error}.\nStart one with `ray start --head`, or leave out --address."
        ) from None


def _check_speaks_grpc(connection: socket.socket) -> None:
    """Ray waits without end for a host that accepts connections and says nothing; a gRPC server greets at once."""
    connection.settimeout(CONNECT_SECONDS)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    greeting = connection.recv(9)
    if len(greeting) < 4 or greeting[3] != 4:  # the type of an HTTP/2 settings frame
        raise OSError("what answers there is not Ray")


def _lost(job: Job, error: Exception) -> PackResult:
    last_line = str(error).strip().rpartition("\n")[2]
    return _failed(job, f"the worker failed {RETRIES + 1} times: {last_line}")


def _failed(job: Job, reason: str) -> PackResult:
    trials = range(len(job.pack.trials))
    return PackResult([None for _ in trials], [], dict.fromkeys(trials, reason), device=job.setup.device)


def _quieten() -> None:
    for name, value in {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_RESULT_BUFFER_LENGTH": "0",
        "TUNE_GLOBAL_CHECKPOINT_S": "1000000",  # finished packs are on our disk; Tune's own state is not used
    }.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Tune prints banners at any verbosity, and the traceback of every worker that dies."""
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()):
        yield
