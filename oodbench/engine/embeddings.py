"""Learned embeddings of categorical columns, before the first layer of an `mlp`.

A category is a block of columns, of which at most one is 1. The vector of its level is then a product of a table
[width, level] with the block, also for rows whose level stands in no column: their vector is 0. The first layer
multiplies that vector, so table and layer are one matrix: a step multiplies the two once, whatever the number of rows,
and a trained model is an ordinary one with the tables multiplied in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oodbench.engine.models import Layered, Mlp, Model
from oodbench.engine.tensor import Tensor
from oodbench.errors import InvalidSetting

if TYPE_CHECKING:
    from oodbench.engine.chance import Chance

Categories = tuple[range, ...]
"""The places of the columns of each categorical variable, in their order."""


def check_embeddings(model: Model, categories: Categories) -> None:
    if isinstance(model, Mlp) and model.embed and not categories:
        raise InvalidSetting(
            f"model {model.name!r}: embed={model.embed} is for datasets that declare categorical columns, one a level; "
            "this one has none.\nLeave out embed."
        )


def with_embeddings(model: Model, categories: Categories) -> Model:
    """The model that trains on rows with these categories: another one, if it embeds them."""
    check_embeddings(model, categories)
    if not (isinstance(model, Mlp) and model.embed):
        return model
    return Embedded(replace(model, embed=0), model.embed, categories)


@dataclass(frozen=True)
class Embedded(Layered):
    """An `mlp` behind embeddings. Its parameters are those of the `mlp` on numbers and vectors, then the tables."""

    mlp: Mlp
    wide: int  # numbers of a level's vector
    categories: Categories

    @property
    def hidden(self) -> tuple[int, ...]:
        return self.mlp.hidden

    @property
    def bias(self) -> bool:
        return self.mlp.bias

    def parameter_count(self, inputs: int, outputs: int) -> int:
        return self.mlp.parameter_count(self._narrow(inputs), outputs) + sum(self._table_sizes)

    def initial(self, uniform: Tensor, inputs: int, outputs: int) -> Tensor:
        """Of the `mlp` as without embeddings; of the tables normal, as those of torch."""
        from torch import cat

        of_mlp, of_tables = self._split(uniform)
        tables = math.sqrt(2) * ((2 * of_tables - 1) * (1 - 1e-7)).erfinv()
        return cat([self.mlp.initial(of_mlp, self._narrow(inputs), outputs), tables], 1)

    def columns(self, x: Tensor) -> Tensor:
        return self.mlp.columns(x)

    def pieces(self, parameters: Tensor, inputs: int, outputs: int) -> tuple[Tensor, ...]:
        """Those of the `mlp` on the columns themselves."""
        of_mlp, of_tables = self._split(parameters)
        first, *later = self.mlp.pieces(of_mlp, self._narrow(inputs), outputs)
        return (self._multiply(first, of_tables, inputs), *later)

    def represent(self, pieces: Sequence[Tensor], columns: Tensor, chance: Chance | None = None) -> Tensor:
        return self.mlp.represent(pieces, columns, chance)

    def read_out(self, pieces: Sequence[Tensor], representation: Tensor, outputs: int) -> Tensor:
        return self.mlp.read_out(pieces, representation, outputs)

    def forward(
        self, pieces: Sequence[Tensor], columns: Tensor, outputs: int, chance: Chance | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.mlp.forward(pieces, columns, outputs, chance)

    def finish(self, parameters: Tensor, inputs: int, outputs: int) -> tuple[Model, Tensor]:
        from torch import cat

        return self.mlp, cat(self.pieces(parameters, inputs, outputs), 1)

    def _multiply(self, first_layer: Tensor, of_tables: Tensor, inputs: int) -> Tensor:
        """The first layer on the columns, [trial, unit * (column + 1)], from the one on numbers and vectors."""
        from torch import cat

        trials, blocks = len(first_layer), list(self._blocks(inputs))
        widths = [self.wide if embedded else columns for columns, embedded in blocks]
        tables = iter(of_tables.split_with_sizes(self._table_sizes, dim=1))
        parts = first_layer.view(trials, -1, sum(widths)).split_with_sizes(widths, dim=2)
        multiplied = [
            part.bmm(next(tables).view(trials, self.wide, -1)) if embedded else part
            for part, (_, embedded) in zip(parts, blocks, strict=True)
        ]
        return cat(multiplied, 2).flatten(1)

    def _blocks(self, inputs: int) -> Iterator[tuple[int, bool]]:
        """How many columns lie side by side, and whether they are a category; the last block has the bias."""
        end = 0
        for category in self.categories:
            yield category.start - end, False
            yield len(category), True
            end = category.stop
        yield inputs + self.bias - end, False

    def _narrow(self, inputs: int) -> int:
        """How many numbers the first layer sees."""
        return inputs + sum(self.wide - len(category) for category in self.categories)

    def _split(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the `mlp`, and those of the tables."""
        end = parameters.shape[1] - sum(self._table_sizes)
        return parameters[:, :end], parameters[:, end:]

    @property
    def _table_sizes(self) -> list[int]:
        return [self.wide * len(category) for category in self.categories]
