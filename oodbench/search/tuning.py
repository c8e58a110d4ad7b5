"""Ray Tune, run to the end of a queue, with a watch over its workers."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ray
from ray import tune

from oodbench.search.own import scratch_folder
from oodbench.search.queues import RETRIES, Config, OutOfMemory, Queue
from oodbench.settings.duration import duration_text

LOW_MEMORY = "running low on memory"  # in what Ray says of workers that it killed for that
NO_MEMORY = "its node ran out of memory"


class Watch(tune.Callback):
    """Hands over reports as they arrive, ends trainings that take too long, and says why a worker was lost."""

    def __init__(
        self,
        on_report: Callable[[Config, Mapping[str, Any]], None],
        on_lost: Callable[[Config, str], None],
        seconds: Callable[[Config], float],
        queue: Queue,
        on_start: Callable[[], None] = lambda: None,
        on_end: Callable[[Config], None] = lambda config: None,
    ) -> None:
        self.on_report, self.on_lost, self.seconds, self.queue = on_report, on_lost, seconds, queue
        self.on_start, self.on_end = on_start, on_end
        self._training: dict[str, tuple[Any, float]] = {}  # Tune trial id -> Tune trial, when its time is over
        self._overdue: set[str] = set()
        self._alive: dict[str, Any] = {}  # Tune trial id -> Tune trial that has a worker

    def on_step_begin(self, iteration: int, trials: Any, **_: Any) -> None:
        now = time.monotonic()
        for trial_id, (trial, deadline) in list(self._training.items()):
            if now > deadline:
                del self._training[trial_id]
                self._overdue.add(trial_id)
                trial.max_failures = 0  # once more would take as long
                ray.kill(trial.temporary_state.ray_actor)

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self.queue.begin(trial.trial_id)
        self._alive[trial.trial_id] = trial

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict[str, Any], **_: Any) -> None:
        if "training" in result:
            self.on_start()
            self._training[trial.trial_id] = (trial, time.monotonic() + self.seconds(trial.config))
            return
        self._training.pop(trial.trial_id, None)
        self.on_report(trial.config, result)

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self._alive.pop(trial.trial_id, None)
        trial.last_result.pop("pack", None)  # delivered: Tune need not keep it
        self.on_end(trial.config)

    def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self._training.pop(trial.trial_id, None)

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self._training.pop(trial.trial_id, None)
        self._alive.pop(trial.trial_id, None)
        if trial.trial_id in self._overdue:
            reason = f"no result within {duration_text(self.seconds(trial.config))} (--trial-timeout)"
        else:
            reason = _tried(_cause(trial))
        self.on_lost(trial.config, reason)

    def end_all(self) -> None:
        """Tune has ended with an error, and left its workers as they were: the one that takes too much lives on."""
        for trial in self._alive.values():
            if trial.temporary_state.ray_actor is not None:
                ray.kill(trial.temporary_state.ray_actor)
        self._alive.clear()
        self._training.clear()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return (tune.Callback, ())  # Tune saves its callbacks; this one has no state to save


def tune_all(
    trainable: Callable[..., None],
    parameters: Mapping[str, Any],
    resources: Callable[[Config], Mapping[str, float]],
    watch: Watch,
    make_scheduler: Callable[[], Any] = lambda: None,
) -> None:
    """Run Tune until the queue has nothing more to suggest, or the user stops it."""

    def bundle(config: Config) -> tune.PlacementGroupFactory:
        return tune.PlacementGroupFactory([dict(resources(config))])

    whole = tune.with_resources(tune.with_parameters(trainable, **parameters), bundle)
    while True:
        try:
            _tune(whole, watch, make_scheduler())
            return
        except OutOfMemory:
            watch.end_all()
            given_up = watch.queue.use_up_memory()
            if given_up is not None:
                watch.on_lost(given_up, _tried(NO_MEMORY))


def _tune(trainable: Any, watch: Watch, scheduler: Any) -> None:
    with scratch_folder() as scratch, _silent(), _memory_said_plainly():
        tune.Tuner(
            trainable,
            tune_config=tune.TuneConfig(search_alg=watch.queue, scheduler=scheduler, num_samples=-1, reuse_actors=True),
            run_config=tune.RunConfig(
                storage_path=str(scratch),
                verbose=0,
                callbacks=[watch],
                failure_config=tune.FailureConfig(max_failures=RETRIES),
            ),
        ).fit()


def _tried(cause: str) -> str:
    return f"the worker failed {RETRIES + 1} times: {cause}"


def _cause(trial: Any) -> str:
    """One line of what Ray says at length."""
    said = Path(trial.error_file).read_text().strip()
    last = said.rpartition("\n")[2]
    if LOW_MEMORY in said:
        return NO_MEMORY
    for sign, meaning in (("node has died", "its node was lost"), ("worker process has died", "its process died")):
        if sign in last:
            return meaning
    return last


@contextlib.contextmanager
def _memory_said_plainly() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if LOW_MEMORY not in str(error):
            raise
        raise OutOfMemory from None


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Tune prints banners at any verbosity, and a page for every worker that is lost: `Watch` says it in a line."""
    logger = logging.getLogger("ray.tune")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(before)
