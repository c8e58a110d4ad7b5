"""Getting census files: from the Census Bureau or a mirror over HTTP, or from a folder.

A file comes under a name of its own, is continued where an earlier try ended, is read whole, and only then takes its
place: a half-written file is never taken for a whole one.
"""

from __future__ import annotations

import errno
import logging
import random
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from oodbench.errors import Interrupted, Unreachable, UnusableData, UserError, WorkError
from oodbench.plugin.files import Holding, Sources, Transfer
from oodbench.texts import redact, without_user
from oodbench_datasets.acs.archive import FILE_BYTES, Allowance, check_file_size, count_rows
from oodbench_datasets.acs.census import ADDRESS, CODES, STATES, CensusFolder, Entry, PersonFile

THREADS = 4
ATTEMPTS = 5
BACKOFF_SECONDS = 1.0  # before the second attempt; doubled before each further one
CONNECT_SECONDS, READ_SECONDS = 10.0, 30.0
CHUNK = 1 << 16
WHICH = ("year", "horizon", "states")


class _Again(Exception):
    """The attempt failed in a way that may pass."""


class _Hopeless(Exception):
    """This address will never serve the file."""


def fetch(census: CensusFolder, which: Mapping[str, str], sources: Sources, transfer: Transfer) -> list[Holding]:
    """Get the files; files that are present and whole are kept. A failure does not stop the others."""
    from pooch import get_logger

    get_logger().setLevel(logging.ERROR)
    files = wanted(which, sources.folder)
    work = _Fetch(census, sources, transfer, threading.Event(), Allowance())
    transfer.begin(len(files))
    with ThreadPoolExecutor(THREADS, "fetch") as executor:
        futures = {executor.submit(work.get, file): file for file in files}
        try:
            wait(futures)
        except KeyboardInterrupt:
            work.stop.set()
            executor.shutdown(cancel_futures=True)
            raise Interrupted("stopped.\nThe same command continues from there.") from None
        finally:
            transfer.end()
    errors = {file: future.exception() for future, file in futures.items()}
    failures = [(file, error) for file, error in errors.items() if isinstance(error, Exception)]
    if failures:
        raise _summary(failures, len(files))
    keys = {file.key for file in files}
    return [holding for holding in census.inventory() if holding.name in keys]


def wanted(which: Mapping[str, str], folder: Path | None) -> list[PersonFile]:
    """The files meant by year, horizon and states; of a folder without states named, those that are in it."""
    beyond = sorted(set(which) - set(WHICH))
    if beyond:
        raise UserError(f"census files cannot be chosen by {', '.join(beyond)}.\nChoose them by {', '.join(WHICH)}.")
    year = which.get("year", "2018")
    if not year.isdecimal():
        raise UserError(f"--year {year} is not a year.\nFor example: --year 2018.")
    names = [name.strip().upper() for name in which.get("states", "").split(",") if name.strip()]
    states = names or (CODES if folder else STATES)
    files = [PersonFile(int(year), which.get("horizon", "1-Year"), state) for state in dict.fromkeys(states)]
    if folder is None:
        return files
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}.\nName a folder with the zip or CSV files of the Census Bureau.")
    present = [file for file in files if _in_folder(folder, file)]
    absent = [file for file in files if file not in present]
    if not present or (names and absent):
        looked = files[0] if not names else absent[0]
        raise UnusableData(
            f"{folder} has no {looked.zip_name} or {looked.csv_name} ({looked.key}).\n"
            "The files must have the Census Bureau's names, in that folder or in its subfolder YEAR/HORIZON."
        )
    return present


@dataclass(frozen=True)
class _Fetch:
    census: CensusFolder
    sources: Sources
    transfer: Transfer
    stop: threading.Event
    allowance: Allowance

    def get(self, file: PersonFile) -> None:
        """Put the file in its place and into the registry, unless it is present and whole."""
        if self.stop.is_set():
            return None
        place = self.census.folder / str(file.year) / file.horizon
        try:
            if self.sources.renew:
                self.census.forget(file)
            entry = self.census.entries().get(file.key)
            if entry and self._is_whole(entry):
                self.transfer.expect(file.key, entry.size, entry.size)
                return self.transfer.finish(file.key)
            place.mkdir(parents=True, exist_ok=True)
            if self.sources.folder is not None:
                self._copy(file, place, entry)
            else:
                self._download_anywhere(file, place, entry)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                _part(place, file.zip_name).unlink(missing_ok=True)
                raise WorkError(
                    f"there is no space left for {file.key} in {self.census.folder}.\n"
                    "Free some space, or choose another folder with --data-dir."
                ) from None
            raise WorkError(f"{file.key} could not be written: {error}\nCheck {self.census.folder}.") from None
        return self.transfer.finish(file.key)

    def _is_whole(self, entry: Entry) -> bool:
        from pooch import file_hash

        path = self.census.folder / entry.path
        return path.is_file() and path.stat().st_size == entry.size and file_hash(str(path)) == entry.sha256

    def _copy(self, file: PersonFile, place: Path, entry: Entry | None) -> None:
        from pooch import file_hash

        assert self.sources.folder is not None
        source = _in_folder(self.sources.folder, file)
        assert source is not None
        target = place / source.name
        size = source.stat().st_size
        self.transfer.expect(file.key, size, 0)
        part = _part(place, source.name)
        try:
            try:
                check_file_size(source, size)
                shutil.copyfile(source, part)
                rows = count_rows(part, file, self.allowance)
            except ValueError as error:
                raise UnusableData(f"{source} cannot be used: {error}.\nDownload the file again.") from None
            sha256 = file_hash(str(part))
            if entry and sha256 != entry.sha256:
                raise _differs(file, source)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        self.transfer.advance(file.key, size)
        self._keep(file, target, sha256, rows, str(source))

    def _download_anywhere(self, file: PersonFile, place: Path, entry: Entry | None) -> None:
        reasons = []
        for address in self.sources.mirrors or [ADDRESS]:
            url = file.url(address)
            try:
                return self._download(file, place, entry, url)
            except (_Again, _Hopeless) as error:
                reasons.append(redact(f"{url}: {error}"))
                self.transfer.note(reasons[-1])
        raise Unreachable(
            f"{file.key} could not be fetched. {'; '.join(reasons)}\n"
            "Run the same command again, or name another address with --mirror or a folder with --from."
        )

    def _download(self, file: PersonFile, place: Path, entry: Entry | None, url: str) -> None:
        for attempt in range(ATTEMPTS):
            if attempt:
                # not all threads at once
                self.stop.wait(BACKOFF_SECONDS * 2 ** (attempt - 1) * random.uniform(0.75, 1.25))
            if self.stop.is_set():
                raise _Hopeless("stopped")
            try:
                return self._try(file, place, entry, url)
            except _Again as error:
                if attempt == ATTEMPTS - 1:
                    raise
                self.transfer.note(redact(f"{url}: {error}; trying again"))
        return None

    def _try(self, file: PersonFile, place: Path, entry: Entry | None, url: str) -> None:
        """One attempt. pooch moves the file into its place if it equals the one first fetched."""
        import pooch
        import requests

        target = place / file.zip_name
        target.unlink(missing_ok=True)  # damaged, or not in the registry: its content is unknown
        downloader = _Continuing(file, _part(place, file.zip_name), self)
        expected_hash = entry.sha256 if entry and entry.path.endswith(".zip") else None
        try:
            pooch.retrieve(url, expected_hash, file.zip_name, place, downloader=downloader)
        except requests.HTTPError as error:
            status, reason = _status(error)
            text = f"HTTP {status} {reason}"
            raise (_Again(text) if status >= 500 or status in (408, 425, 429) else _Hopeless(text)) from None
        except requests.exceptions.InvalidURL as error:
            raise _Hopeless(f"not an address: {error}") from None
        except (requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema) as error:
            raise _Hopeless(str(error)) from None
        except requests.RequestException as error:
            raise _Again(_plain(error)) from None
        except ValueError as error:
            if "hash" in str(error).lower():
                raise _differs(file, redact(url)) from None
            raise
        self._keep(file, target, pooch.file_hash(str(target)), downloader.rows, without_user(url))

    def _keep(self, file: PersonFile, path: Path, sha256: str, rows: int, source: str) -> None:
        relative = str(path.relative_to(self.census.folder))
        self.census.record(file, Entry(relative, sha256, path.stat().st_size, rows, source))


class _Continuing:
    """A pooch downloader that resumes a partial file where the server allows it, and checks the result."""

    def __init__(self, file: PersonFile, part: Path, work: _Fetch) -> None:
        self.file, self.part, self.transfer = file, part, work.transfer
        self.stop, self.allowance = work.stop, work.allowance
        self.rows = 0

    def __call__(self, url: str, output_file: str, pooch: Any, check_only: bool = False) -> None:
        start = self.part.stat().st_size if self.part.exists() else 0
        with self.part.open("ab") as stream:
            self._get(url, stream, start)
        try:
            self.rows = count_rows(self.part, self.file, self.allowance)
        except ValueError as error:
            self.part.unlink()
            # pieces of two different files may not fit: once more from the start
            raise (_Again if start else _Hopeless)(f"the downloaded file cannot be used: {error}") from None
        self.part.replace(output_file)

    def _get(self, url: str, stream: IO[bytes], start: int) -> None:
        import requests
        from pooch import HTTPDownloader

        def look(response: Any, **_: Any) -> None:
            """Before the first byte: does the server continue, or start again?"""
            if response.status_code == 200:
                stream.truncate(0)
            length = response.headers.get("content-length", "")
            if response.status_code in (200, 206) and length.isdecimal():
                before = start if response.status_code == 206 else 0
                self.transfer.expect(self.file.key, before + int(length), before)
            if response.status_code == 206 and f"bytes {start}-" not in response.headers.get("content-range", ""):
                stream.truncate(0)
                raise _Again("the server resumed at the wrong position")

        headers = {"Accept-Encoding": "identity", "User-Agent": "oodbench"}
        if start:
            headers["Range"] = f"bytes={start}-"
        download = HTTPDownloader(
            chunk_size=CHUNK, headers=headers, hooks={"response": look}, timeout=(CONNECT_SECONDS, READ_SECONDS)
        )
        try:
            download(url, _Sink(stream, self), None)
        except requests.HTTPError as error:
            answer = error.response
            if answer is None or answer.status_code != 416:
                raise
            if not answer.headers.get("content-range", "").endswith(f"/{start}"):  # else the file is complete
                stream.truncate(0)
                raise _Again("the server has a shorter file") from None


class _Sink:
    """A file that tells how much is written to it, and refuses when the user wants to stop."""

    def __init__(self, stream: IO[bytes], owner: _Continuing) -> None:
        self.stream, self.owner = stream, owner

    def write(self, chunk: bytes) -> None:
        if self.owner.stop.is_set():
            raise _Hopeless("stopped")
        self.stream.write(chunk)
        if self.stream.tell() > FILE_BYTES:
            self.stream.truncate(0)
            raise _Hopeless(f"the file has more than {FILE_BYTES >> 30} GB")
        self.owner.transfer.advance(self.owner.file.key, len(chunk))

    def flush(self) -> None:
        self.stream.flush()


def _part(place: Path, name: str) -> Path:
    return place / f".part-{name}"


def _in_folder(folder: Path, file: PersonFile) -> Path | None:
    places = (folder, folder / str(file.year) / file.horizon)
    candidates = [place / name for place in places for name in (file.zip_name, file.csv_name)]
    return next((path for path in candidates if path.is_file()), None)


def _differs(file: PersonFile, source: Any) -> UnusableData:
    return UnusableData(
        f"{source} differs from the file that was first fetched as {file.key} (its SHA-256 differs).\n"
        f"If the Census Bureau has revised it, accept it: {file.remedy} --renew"
    )


def _status(error: Any) -> tuple[int, str]:
    return error.response.status_code, error.response.reason


def _plain(error: Exception) -> str:
    """The innermost reason, without addresses in memory."""
    cause: Any = error
    while cause.args and isinstance(cause.args[0], Exception):
        cause = cause.args[0]
    reason = getattr(cause, "reason", None) or cause
    return " ".join(str(reason).split("object at 0x")[-1].split(">: ")[-1].split())[:160]


def _summary(failures: list[tuple[PersonFile, Exception]], files: int) -> Exception:
    """The first failure speaks for all, with how many there were."""
    first = failures[0][1]
    if len(failures) == 1 or not isinstance(first, UserError | WorkError):
        return first
    line, _, rest = str(first).partition("\n")
    others = ", ".join(file.state for file, _ in failures[1:])
    return type(first)(f"{len(failures)} of {files} files could not be fetched. {line} (also {others})\n{rest}")
