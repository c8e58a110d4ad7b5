"""Every command, Python block and file of the documents, for real and in order, page by page in a folder of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from documents import Block, blocks, pages
from exceptions import NEEDS, NOT_RUN, OWN_RAY, SERVERS, SHORTER, entry
from tally import Tally

if TYPE_CHECKING:
    from tests.proofs.docs.conftest import Place

PAGES = [page for page in pages() if any(block.language in ("bash", "python", "toml") for block in blocks(page))]
SECONDS = 400  # for a block
PRELUDE = """
set -euo pipefail
until_it_answers() {  # start a server, and stop it when it has told its address and answers there
    "$@" 2> server.log & local server=$!
    until grep -q http server.log; do kill -0 "$server"; sleep 0.2; done
    python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "$(grep -o 'http[^#]*' server.log)"
    kill "$server"; wait "$server"
}
"""


@pytest.fixture(scope="module")
def done(make_place: Callable[[], Place], tally: Tally) -> Iterator[dict[str, Future[None]]]:
    """What becomes of each page: two at a time, since commands mostly start and import on one core."""
    places = {page: make_place() for page in PAGES}
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {page: pool.submit(follow, page, places[page], tally) for page in PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_works(page: str, done: dict[str, Future[None]]) -> None:
    done[page].result()


def follow(page: str, place: Place, tally: Tally) -> None:
    """Do all that a page says, in order."""
    for block in blocks(page):
        if block.title:
            file = place.folder / block.title
            assert file.parent.is_dir(), f"{block}: nothing made the folder of {block.title}"
            file.write_text(block.text)
            tally.ran["files"] += 1
        elif block.language == "python":
            (place.folder / "block.py").write_text(block.text)
            run(block, ["python block.py"], place)
            tally.ran["Python blocks"] += 1
        elif block.language == "bash":
            commands = [as_run(command, page, tally) for command in block.commands()]
            run(block, [command for command in commands if command], place)
        else:
            raise AssertionError(f"{block}: nobody knows what to do with a block of {block.language!r}")


def as_run(command: str, page: str, tally: Tally) -> str:
    """The command with what the tables of exceptions append, or nothing if it cannot be run."""
    lacking = [(part, f"needs {tool}") for part, tool in NEEDS.items() if shutil.which(tool) is None]
    if refused := entry([*NOT_RUN, *lacking], command):
        checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        tally.not_run[command] = refused[1]
        tally.used.add(refused[0])
        return ""
    tally.ran["commands"] += 1
    if shorter := entry(SHORTER, command):
        tally.used.add(shorter[0])
        command = f"{command} {shorter[1]}"
    if command.startswith("oodbench run") and "--address" not in command and page not in OWN_RAY:
        command += " --address auto"
    if server := next((server for server in SERVERS if command.startswith(server)), None):
        tally.used.add(server)
        command = f"until_it_answers {command}"
    return command


def run(block: Block, commands: list[str], place: Place) -> None:
    """A block is one script: what a line sets, the next may use."""
    lines = [line for command in commands for line in (f"echo + {shlex.quote(command)}", command)]
    shell = subprocess.Popen(
        ["bash", "-c", "\n".join([PRELUDE, *lines])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=place.folder,
        env=place.environment,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = shell.communicate(timeout=SECONDS)
    finally:
        if shell.poll() is None:  # it hangs: end what it started, too
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(timeout=20)
    assert shell.returncode == 0, f"{block} ended with {shell.returncode}:\n{said[-4000:]}"


def test_no_exception_is_left_over(tally: Tally) -> None:
    if not tally.ran:
        pytest.skip("no page was run before this")
    stale = {part for part, _ in (*NOT_RUN, *SHORTER)} - tally.used - NEEDS.keys()
    assert not stale, f"no command needs these exceptions: {sorted(stale)}"
