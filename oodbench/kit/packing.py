"""Arrays and a description as bytes, in the format of safetensors: nothing of it can run when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH = 8  # bytes before the header, which say how long it is


def pack(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> bytes:
    from safetensors.numpy import save

    rowwise = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # others would be jumbled
    content: bytes = save(rowwise, metadata={"about": json.dumps(dict(about))})
    return content


def unpack(content: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """What `pack` made them of."""
    from safetensors.numpy import load

    header = json.loads(content[LENGTH : LENGTH + int.from_bytes(content[:LENGTH], "little")])
    return load(content), json.loads(header["__metadata__"]["about"])
