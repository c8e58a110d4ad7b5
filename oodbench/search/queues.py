"""What Ray Tune runs next: packs or configurations, and again what ran when a node's memory was used up."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ray import tune

from oodbench.errors import WorkError
from oodbench.search.jobs import WHOLE

if TYPE_CHECKING:
    from oodbench.search.proposals import Proposals

RETRIES = 2  # of what was lost with its worker
PAUSE_SECONDS = 2.0  # before what used up the memory runs again: others may have used it, and be done soon

Config = Mapping[str, Any]


class OutOfMemory(WorkError):
    """Ray killed workers because memory ran out, which ends Tune."""

    def __init__(self) -> None:
        super().__init__(
            "a node ran out of memory, and Ray killed its workers. Finished work is saved.\n"
            "Free some memory, or run fewer packs at a time with --cpus-per-pack 2; the same command continues."
        )


@dataclass(eq=False)
class _Ticket:
    config: Config
    begun: bool = False
    lost: int = 0  # how often the memory was used up while nothing else ran


class Queue(tune.search.Searcher):
    """Ray kills whichever worker is the newest, not the one that takes too much. So what ran when the memory was used
    up runs again one at a time, and what uses it up alone is given up."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, _Ticket] = {}  # by Tune trial
        self._suspects: deque[_Ticket] = deque()
        self._again: deque[_Ticket] = deque()
        self._alone = False
        self._stalls = 0  # how often in a row the memory was used up before anything began

    @abstractmethod
    def propose(self) -> Any:
        """A configuration of a Tune trial, None while there is none yet, or FINISHED."""

    def suggest(self, trial_id: str) -> Any:
        self._alone = bool(self._suspects) or (self._alone and bool(self._running))
        if self._alone:
            if self._running:
                return None
            ticket = self._suspects.popleft()
            time.sleep(PAUSE_SECONDS * ticket.lost)
        elif self._again:
            ticket = self._again.popleft()
        else:
            proposed = self.propose()
            if proposed is None or proposed == tune.search.Searcher.FINISHED:
                return proposed
            ticket = _Ticket(proposed)
        self._running[trial_id] = ticket
        return dict(ticket.config)

    def begin(self, trial_id: str) -> None:
        """Its worker is up."""
        if trial_id in self._running:
            self._running[trial_id].begun = True

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        self._running.pop(trial_id, None)
        self._stalls = 0

    def use_up_memory(self) -> Config | None:
        """Put back what ran; or give up what was alone whenever it ran. OutOfMemory where not even workers start."""
        running, self._running = list(self._running.values()), {}
        begun = [ticket for ticket in running if ticket.begun]
        self._again.extend(ticket for ticket in running if not ticket.begun)
        if not begun:
            self._stalls += 1
            if self._stalls > RETRIES:
                raise OutOfMemory
            time.sleep(PAUSE_SECONDS * self._stalls)
        for ticket in begun:
            ticket.begun, ticket.lost = False, ticket.lost + (len(begun) == 1)
        if len(begun) == 1 and begun[0].lost > RETRIES:
            return begun[0].config
        self._suspects.extend(begun)
        return None

    def save(self, checkpoint_path: str) -> None:
        """Finished packs are on our disk; Tune's own state is not used."""


class PackQueue(Queue):
    """Packs in their order, then whatever has to be run trial by trial."""

    def __init__(self, packs: Iterable[int]) -> None:
        super().__init__()
        self._waiting = deque((number, WHOLE) for number in packs)

    def propose(self) -> Any:
        if not self._waiting:
            return None if self._running else tune.search.Searcher.FINISHED  # what runs may yet be split
        number, position = self._waiting.popleft()
        return {"job": number, "position": position}

    def split(self, number: int, trials: int) -> None:
        self._waiting.extend((number, position) for position in range(trials))


class ConfigurationQueue(Queue):
    """Configurations as they are proposed, each when a worker is free for it, until the budget is used."""

    def __init__(self, proposals: Proposals, room: int) -> None:
        super().__init__()
        self._proposals, self._room = proposals, room
        self.exhausted = False  # nothing more is proposed, rather than the user stopped it

    def propose(self) -> Any:
        if self._proposals.over:
            self.exhausted = not self._running
            return None if self._running else tune.search.Searcher.FINISHED
        proposed = self._proposals.next() if len(self._running) < self._room else None
        if proposed is None:
            return None
        index, hparams = proposed
        return {"configuration": index, "hparams": hparams}
