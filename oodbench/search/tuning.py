"""What oodbench plugs into Ray Tune: the queue of packs, and a watch over the workers."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune
from ray.tune.search import Searcher

from oodbench.duration import duration_text
from oodbench.errors import WorkError
from oodbench.search.packs import WHOLE

if TYPE_CHECKING:
    from oodbench.search.adaptive import Proposals

RETRIES = 2  # of a Tune trial whose worker was lost
LOW_MEMORY = "running low on memory"  # in what Ray says of workers that it killed for that

Config = Mapping[str, Any]


class PackQueue(Searcher):
    """Packs in their order, then whatever has to be run trial by trial."""

    def __init__(self, packs: Iterable[int]) -> None:
        super().__init__()
        self._waiting = deque((number, WHOLE) for number in packs)
        self._running: set[str] = set()

    def suggest(self, trial_id: str) -> Any:
        if not self._waiting:
            return None if self._running else Searcher.FINISHED  # what runs may yet be split
        self._running.add(trial_id)
        number, position = self._waiting.popleft()
        return {"job": number, "position": position}

    def split(self, number: int, trials: int) -> None:
        self._waiting.extend((number, position) for position in range(trials))

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        self._running.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Finished packs are on our disk; Tune's own state is not used."""


class ConfigurationQueue(Searcher):
    """Configurations as they are proposed, each when a worker is free for it, until the budget is used."""

    def __init__(self, proposals: Proposals, room: int) -> None:
        super().__init__()
        self._proposals, self._room = proposals, room
        self._running: set[str] = set()
        self.exhausted = False  # nothing more is proposed, rather than the user stopped it

    def suggest(self, trial_id: str) -> Any:
        if self._proposals.over:
            self.exhausted = not self._running
            return None if self._running else Searcher.FINISHED
        proposed = self._proposals.next() if len(self._running) < self._room else None
        if proposed is None:
            return None
        self._running.add(trial_id)
        index, hparams = proposed
        return {"configuration": index, "hparams": hparams}

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        self._running.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """As for the packs."""


class Watch(tune.Callback):
    """Hands over reports as they arrive, ends trainings that take too long, and says why a worker was lost."""

    def __init__(
        self,
        on_report: Callable[[Config, Mapping[str, Any]], None],
        on_lost: Callable[[Config, str], None],
        seconds: Callable[[Config], float],
        on_start: Callable[[], None] = lambda: None,
        on_end: Callable[[Config], None] = lambda config: None,
    ) -> None:
        self.on_report, self.on_lost, self.seconds = on_report, on_lost, seconds
        self.on_start, self.on_end = on_start, on_end
        self._training: dict[str, tuple[Any, float]] = {}  # Tune trial id -> Tune trial, when its time is over
        self._overdue: set[str] = set()

    def on_step_begin(self, iteration: int, trials: Any, **_: Any) -> None:
        now = time.monotonic()
        for trial_id, (trial, deadline) in list(self._training.items()):
            if now > deadline:
                del self._training[trial_id]
                self._overdue.add(trial_id)
                trial.max_failures = 0  # once more would take as long
                ray.kill(trial.temporary_state.ray_actor)

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict[str, Any], **_: Any) -> None:
        if "training" in result:
            self.on_start()
            self._training[trial.trial_id] = (trial, time.monotonic() + self.seconds(trial.config))
            return
        self._training.pop(trial.trial_id, None)
        self.on_report(trial.config, result)

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        trial.last_result.pop("pack", None)  # delivered: Tune need not keep it
        self.on_end(trial.config)

    def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self._training.pop(trial.trial_id, None)

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self._training.pop(trial.trial_id, None)
        if trial.trial_id in self._overdue:
            reason = f"no result within {duration_text(self.seconds(trial.config))} (--trial-timeout)"
        else:
            reason = f"the worker failed {RETRIES + 1} times: {_cause(trial)}"
        self.on_lost(trial.config, reason)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return (tune.Callback, ())  # Tune saves its callbacks; this one has no state to save


def tune_all(
    trainable: Callable[..., None],
    parameters: Mapping[str, Any],
    resources: Mapping[str, float],
    search_alg: Searcher,
    watch: Watch,
    scheduler: Any = None,
) -> None:
    """Run Tune until the searcher has nothing more to suggest, or the user stops it."""
    asked = {"cpu" if name == "CPU" else name.lower(): amount for name, amount in resources.items()}
    with tempfile.TemporaryDirectory(prefix="oodbench-tune-") as scratch, _silent(), _memory_said_plainly():
        tune.Tuner(
            tune.with_resources(tune.with_parameters(trainable, **parameters), asked),
            tune_config=tune.TuneConfig(search_alg=search_alg, scheduler=scheduler, num_samples=-1, reuse_actors=True),
            run_config=tune.RunConfig(
                storage_path=scratch,
                verbose=0,
                callbacks=[watch],
                failure_config=tune.FailureConfig(max_failures=RETRIES),
            ),
        ).fit()


def _cause(trial: Any) -> str:
    """One line of what Ray says at length."""
    said = Path(trial.error_file).read_text().strip().rpartition("\n")[2]
    for sign, meaning in (
        (LOW_MEMORY, "its node ran out of memory"),
        ("node has died", "its node was lost"),
        ("worker process has died", "its process died"),
    ):
        if sign in said:
            return meaning
    return said


class OutOfMemory(WorkError):
    """Ray killed workers that it was just starting; Tune does not survive that."""


@contextlib.contextmanager
def _memory_said_plainly() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if LOW_MEMORY not in str(error):
            raise
        raise OutOfMemory(
            "a node ran out of memory, and Ray killed its workers. What is finished is saved.\n"
            "The same command continues; free memory first, or give packs more room with --cpus-per-pack 2."
        ) from None


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
