"""How commands of the documents are run that cannot be run as they stand: nothing of this is hidden in the documents.

A command that no table names is run as it is written. An entry that no command needs fails the test.
"""

from __future__ import annotations

OWN_RAY = ("docs/method.md", "docs/dataset.md")
"""Their runs start a Ray of their own, as those of most users: it knows what was just installed. So do Python blocks.

All others get `--address auto` and share one Ray."""

SHORTER = [  # (what the command begins with or has, options that are appended): the first that fits
    ("oodbench run --suite unit_tests", "--trials 1 --seeds 1 --method erm"),
    ("oodbench run --suite sem", "--trials 1 --seeds 1"),
    ("oodbench run --suite toys", "--trials 1 --seeds 1"),
    ("oodbench run --suite", "--trials 1 --seeds 1 --method erm --dataset selection_bias"),
    ("oodbench leaderboard --suite", "--trials 1 --seeds 1 --method erm --dataset selection_bias"),
    ("--trials 4 --seeds 3", "--set-training steps=20"),
    ("--trials 8 --seeds 3", "--set-training steps=20"),
    ("--repeats 3", "--repeats 2 --trials 2 --seeds 2 --set-training steps=20"),
    ("oodbench run", "--trials 2 --seeds 2 --set-training steps=20"),
    ("oodbench ui", "--port 5077"),
    ("oodbench site", "--from docs/../leaderboards"),
    ("pip install -e", "--no-deps --no-index --no-build-isolation --quiet"),
    ("python docs/picture.py", "docs/../leaderboards/acs_travel_2024/fair/page/index.html board.png"),
]

SERVERS = ["oodbench ui"]
"""They run until they are stopped: they are, as soon as they answer."""

NEEDS = {"python docs/picture.py": "chromedriver"}
"""Programs that not every machine has: without them the command is not run, and said to be so."""

INSTALLS = "installs everything from a package index; tox did so before this test"
CENSUS = "downloads from the Census Bureau; tests/datasets/test_census.py fetches from a server of its own"
NO_CLUSTER = "there is no such cluster here; its oodbench commands are parsed, the script's grammar is checked"
NO_GPU = "needs a GPU; tests/methods/test_gpu.py trains every method on a pretend one"
MINUTES = "takes long and has a tox environment of its own"

NOT_RUN = [  # (what the command begins with or has, why)
    ("-m venv .venv && .venv/bin/pip install", INSTALLS),
    ("-m venv .venv-test", "tox within tox: the gate runs it"),
    ("python3 -m venv .venv && source", INSTALLS),
    ("pip install -c constraints.txt .", INSTALLS),
    ("pip install 'oodbench[", INSTALLS),
    ("python3 -m venv .venv", INSTALLS),
    (".venv/bin/pip install", INSTALLS),
    (".venv/bin/pytest", "the tests: the gate runs them"),
    ("tox -e paper", MINUTES),
    ("oodbench nightly leaderboards/nightly", MINUTES),
    ("oodbench nightly paper", MINUTES),
    ("git diff leaderboards", "after the command before, which is not run"),
    ("git commit leaderboards", "after the command before, which is not run"),
    ("--from /media/usb", "there is no such disk; tests/datasets/test_census.py takes files from folders"),
    ("oodbench data fetch", CENSUS),
    ("leaderboards/acs_travel_2024/suite.toml", "needs the census files of 2024; tox -e acs runs it"),
    ("--device cuda", NO_GPU),
    ("ray up", NO_CLUSTER),
    ("kubectl exec", NO_CLUSTER),
    ("#SBATCH", NO_CLUSTER),
]


def entry(table: list[tuple[str, str]], command: str) -> tuple[str, str] | None:
    """The first entry of a table that fits the command."""
    return next(((part, said) for part, said in table if part in command), None)
