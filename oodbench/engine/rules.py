"""Rules by which rows are explored that can be kept: what they know is tensors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from oodbench.engine.tensor import Tensor

if TYPE_CHECKING:
    from oodbench.engine.rows import Rows


class KeptRule:
    """For `rows.explore_by`: a rule that a checkpoint can keep. A training that explores by a plain function cannot be
    paused, since nobody can write a function down as numbers."""

    _known: ClassVar[dict[str, type[KeptRule]]] = {}  # a checkpoint names one of these, and nothing else is looked up

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        KeptRule._known[cls.rule_name()] = cls

    @classmethod
    def rule_name(cls) -> str:
        return f"{cls.__module__}.{cls.__qualname__}"

    @staticmethod
    def find(name: str) -> type[KeptRule]:
        return KeptRule._known[name]

    @abstractmethod
    def __call__(self, rows: Rows) -> Tensor:
        """The weights of any rows: [trial, row] or [trial, k, row]."""

    @abstractmethod
    def tensors(self) -> Mapping[str, Tensor]:
        """All that it knows, [trial, ...] by name."""

    @classmethod
    @abstractmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The rule that knows this."""
