"""One way of getting the rows of ACSTravelTime, in a process of its own. Prints seconds, peak memory and rows as JSON.

python census_loaders.py folktables|build|cached ROOT
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from pathlib import Path

YEAR, HORIZON = 2018, "1-Year"


def by_folktables(root: Path) -> int:
    import folktables

    states = sorted(json.loads((root / "states.json").read_text()))
    source = folktables.ACSDataSource(str(YEAR), HORIZON, "person", root_dir=root / "csv")
    x, _, _ = folktables.ACSTravelTime.df_to_numpy(source.get_data(states=states))
    return len(x)


def by_us(root: Path) -> int:
    from oodbench_datasets.acs.census import PersonFile
    from oodbench_datasets.acs.datasets import AcsTravel
    from oodbench_datasets.acs.pums import load_states

    states = sorted(json.loads((root / "states.json").read_text()))
    rows = load_states(AcsTravel.problem, [PersonFile(YEAR, HORIZON, state) for state in states])
    return sum(map(len, rows.values()))


if __name__ == "__main__":
    way, folder = sys.argv[1], Path(sys.argv[2])
    if way == "build":
        shutil.rmtree(folder / "data" / "census" / "cache", ignore_errors=True)
    started = time.perf_counter()
    count = by_folktables(folder) if way == "folktables" else by_us(folder)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": time.process_time(), "megabytes": peak, "rows": count}))
