"""Whether a file is this user's alone: who could have written it, or put another in its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def read_own(path: Path) -> tuple[bool, bytes]:
    """The content of a regular file, and whether only this user could have written it.

    The file is opened once and never through a link: what is checked is what is read, whatever happens to its name.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError("it is not a regular file")
        return status.st_uid == os.getuid() and not status.st_mode & 0o022, file.read()


def foreign_folder(folder: Path) -> Path | None:
    """The folder itself, or the first on the way to it, that others own or can write into."""
    folder.resolve(strict=True)  # refuses links that go round
    if _is_foreign(folder.stat(), owners={os.getuid()}):
        return folder
    way = _way_to(folder.absolute())
    return next((place for place in way if _is_foreign(place.stat(), owners={os.getuid(), 0})), None)


def _way_to(path: Path) -> Iterator[Path]:
    """All folders that decide what a path leads to: those above it, and those that its links lead through."""
    for place in (path, *path.parents):
        yield place
        if place.is_symlink():
            yield from _way_to(place.parent / place.readlink())


def _is_foreign(status: os.stat_result, owners: set[int]) -> bool:
    """A sticky folder such as /tmp is nobody's: in it nobody can replace what belongs to others."""
    if status.st_uid not in owners:
        return True
    if status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & 0o002 or (status.st_mode & 0o020 and not _is_private_group(status.st_gid)))


def _is_private_group(group: int) -> bool:
    """Many systems give each user a group of their own, and make new folders writable for it."""
    import grp
    import pwd

    try:
        user, entry = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}
