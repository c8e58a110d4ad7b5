"""Files that a user names: regular ones only, and no more of them than expected.

A device has no end, and a FIFO waits for a writer that may never come. Errors are OSErrors, for they are handled where
a missing file is.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

DOCUMENT_BYTES = 16 << 20  # a suite, published figures, a registry: the largest are below one megabyte


def open_regular(path: Path) -> BinaryIO:
    """The file for reading, unless it is a folder, a device, a FIFO or a socket."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # without O_NONBLOCK a FIFO waits here
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bounded(path: Path, most: int = DOCUMENT_BYTES) -> bytes:
    """The whole file, unless it is longer than `most` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(most + 1) if size <= most else b""  # a file may grow meanwhile
    if max(size, len(content)) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MB", str(path))
    return content
