"""Models with their encoders as an ONNX graph: raw columns in, predictions out. Of layers with relu between them.

Inputs [row, 1]: numbers and codes are doubles, NaN where missing; other categories are strings, "" where missing; of a
date, each part that the model uses is an input of its own. Outputs: `prediction`, and of classes `probabilities`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.dates import part_names
from oodbench.encoder.encoder import Encoder
from oodbench.encoder.reading import RawColumn
from oodbench.encoder.steps import NOWHERE, CodeGroups, Indicators, Lookup, Marked, Scaled, Step
from oodbench.engine.fitted import FittedModel, stack_layers
from oodbench.errors import UserError
from oodbench.study.ensemble import PREDICTION, Ensemble, Member

OPSET, ML_OPSET, IR = 17, 3, 8  # what runtimes of several years know
PROBABILITIES = "probabilities"
TEXT_PARTS = ("month", "weekday")  # of dates


def build_onnx(ensemble: Ensemble) -> bytes:
    """The graph, as a file has it."""
    check_onnx()
    for member in ensemble.members:
        if not (isinstance(member.model, FittedModel) and member.model.model.is_plain):
            raise UserError(
                "--onnx takes linear models, and mlp models with relu and no norm or residual layers.\n"
                "Leave out --onnx, or run the study with such a model."
            )
    for name in (PREDICTION, PROBABILITIES):
        if name in ensemble.columns:
            raise UserError(f"--onnx: column {name!r} has the name of an output.\nLeave out --onnx, or rename it.")
    return _Graph(ensemble).build()


def check_onnx() -> None:
    if find_spec("onnx") is None:
        raise UserError("--onnx needs onnx, which is not installed.\nInstall it with `pip install 'oodbench[onnx]'`.")


class _Graph:
    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, bool] = {}  # by name, whether it is a text

    def build(self) -> bytes:
        from onnx import TensorProto, checker, helper

        classes = self.ensemble.classes
        said = [self._answer(member) for member in self.ensemble.members]
        total = said[0]
        for other in said[1:]:
            total = self.add("Add", total, other)
        mean = self.add("Div", total, self.constant(float(len(said))))
        outputs = {PREDICTION: TensorProto.STRING if classes else TensorProto.DOUBLE}
        if classes:
            place = self.add("ArgMax", mean, axis=1, keepdims=1)
            self.add("Gather", self.constant(np.array(classes, dtype=object)), place, output=PREDICTION)
            self.add("Identity", mean, output=PROBABILITIES)
            outputs[PROBABILITIES] = TensorProto.DOUBLE
        else:
            self.add("Identity", mean, output=PREDICTION)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.STRING if text else TensorProto.DOUBLE, ["rows", 1])
            for name, text in self.inputs.items()
        ]
        widths = {PREDICTION: 1, PROBABILITIES: len(classes)}
        described = [
            helper.make_tensor_value_info(name, kind, ["rows", widths[name]]) for name, kind in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, "oodbench", inputs, described, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="oodbench")
        checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node; the name of its output."""
        from onnx import helper

        name = output or f"_/{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"_/constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def cast(self, value: str, kind: str) -> str:
        from onnx import TensorProto

        return self.add("Cast", value, to=getattr(TensorProto, kind))

    def _answer(self, member: Member) -> str:
        """Probabilities [row, class], or values [row, 1]."""
        model, encoder = member.model, member.encoder
        assert isinstance(model, FittedModel)
        features = self.add("Concat", *(self._step(step, encoder) for step in encoder.steps), axis=1)
        active = self.cast(features, "FLOAT")
        layers = stack_layers([model], len(encoder.names))
        for depth, (weights, bias) in enumerate(layers):
            product = self.add("MatMul", active, self.constant(np.ascontiguousarray(weights[0].T)))
            active = self.add("Add", product, self.constant(np.ascontiguousarray(bias[0].T)))
            if depth < len(layers) - 1:
                active = self.add("Relu", active)
        outputs = self.cast(active, "DOUBLE")
        if not encoder.classes:
            scaled = self.add("Mul", outputs, self.constant(encoder.scale))
            return self.add("Add", scaled, self.constant(encoder.center))
        if model.recipe.loss != "squared":
            return self.add("Softmax", outputs, axis=1)
        return self._from_signs(outputs, model.width)

    def _from_signs(self, outputs: str, width: int) -> str:
        """As `oodbench.engine.probabilities.from_signs`."""
        zero, one, two = (self.constant(number) for number in (0.0, 1.0, 2.0))
        shares = self.add("Clip", self.add("Div", self.add("Add", outputs, one), two), zero, one)
        if width == 1:
            return self.add("Concat", self.add("Sub", one, shares), shares, axis=1)
        sums = self.add("ReduceSum", shares, self.constant([1]), keepdims=1)
        some = self.add("Greater", sums, zero)
        divided = self.add("Div", shares, self.add("Where", some, sums, one))
        return self.add("Where", some, divided, self.constant(1 / width))

    def _step(self, step: Step, encoder: Encoder) -> str:
        """Features [row, name]."""
        if isinstance(step, Scaled | Marked):
            values = self._numbers(step.column, encoder)
            if isinstance(step, Marked):
                centered = self._less(self.cast(self.add("IsNaN", values), "DOUBLE"), step.center)
                return self.add("Mul", centered, self.constant(step.scale))
            if step.fill is not None:
                values = self.add("Where", self.add("IsNaN", values), self.constant(step.fill), values)
            centered = self._less(values, step.center)
            if step.scale is None:
                return self.add("Mul", centered, self.constant(0.0))
            return self.add("Mul" if step.multiplies else "Div", centered, self.constant(step.scale))
        index = self._group(step, encoder) if isinstance(step, CodeGroups) else self._level(step, encoder)
        flat = self.add("Reshape", index, self.constant([-1]))
        return self.add("Gather", self.constant(table_of(step)), flat, axis=0)

    def _less(self, values: str, center: float) -> str:
        return self.add("Sub", values, self.constant(center))

    def _numbers(self, column: str, encoder: Encoder) -> str:
        raw = _raw_of(column, encoder)
        if raw.kind != "rank":
            return self._input(column, text=False)
        ranks = self.add(
            "LabelEncoder", self._input(column, text=True), domain="ai.onnx.ml", keys_strings=list(raw.order),
            values_floats=[float(rank) for rank in range(len(raw.order))], default_float=float("nan"),
        )  # fmt: skip
        return self.cast(ranks, "DOUBLE")

    def _level(self, step: Indicators | Lookup, encoder: Encoder) -> str:
        """The row of the step's table."""
        levels = len(step.levels)
        if _is_text(step.column, encoder):
            texts = self._input(step.column, text=True)
            keys = {"": levels + 1} | {level: place for place, level in enumerate(step.levels)}
            return self.add(
                "LabelEncoder", texts, domain="ai.onnx.ml", keys_strings=list(keys),
                values_int64s=list(keys.values()), default_int64=levels,
            )  # fmt: skip
        values = self._input(step.column, text=False)
        codes = np.array([[*map(float, step.levels), np.nan]])  # the last equals nothing
        equal = self.cast(self.add("Equal", values, self.constant(codes)), "DOUBLE")
        found = self.add("ReduceMax", equal, axes=[1], keepdims=1)
        place = self.add("ArgMax", equal, axis=1, keepdims=1)
        known = self.add("Where", self.cast(found, "BOOL"), place, self.constant(levels))
        return self.add("Where", self.add("IsNaN", values), self.constant(levels + 1), known)

    def _group(self, step: CodeGroups, encoder: Encoder) -> str:
        values = self._numbers(step.column, encoder)
        gaps = self.add("IsNaN", values)
        codes = self.cast(self.add("Where", gaps, self.constant(0.0), values), "INT64")
        begun = self.cast(self.add("GreaterOrEqual", codes, self.constant([step.starts])), "INT64")
        count = self.add("ReduceSum", begun, self.constant([1]), keepdims=1)
        outside = self.add("Equal", count, self.constant(0))
        if step.last is not None:
            outside = self.add("Or", outside, self.add("Greater", codes, self.constant(step.last)))
        place = self.add("Sub", count, self.constant(1))
        group = self.add("Where", outside, self.constant(len(step.starts)), place)
        return self.add("Where", gaps, self.constant(len(step.starts) + 1), group)

    def _input(self, column: str, text: bool) -> str:
        self.inputs[column] = text
        return column


def table_of(step: Indicators | Lookup | CodeGroups) -> NDArray[np.float64]:
    """The features [level + 2, name] of each level or group, of others, and of missing values."""
    if isinstance(step, Lookup):
        return np.array([*step.values, step.unseen, step.missing], dtype=np.float64)
    learnt: Sequence[bool] = [True] * len(step.names)
    if isinstance(step, CodeGroups):
        places = [*step.places, step.missing]
    else:
        places, learnt = [*range(len(step.levels)), step.other, step.missing], step.learnt
    table = np.zeros((len(places), len(step.names)))
    for row, place in enumerate(places):
        if place != NOWHERE and learnt[place]:
            table[row, place] = 1.0
    return table


def _raw_of(column: str, encoder: Encoder) -> RawColumn:
    """The raw column that gives this one."""
    return next(raw for raw in encoder.raw if column in _given_by(raw))


def _given_by(raw: RawColumn) -> Mapping[str, str]:
    """The columns that a raw one gives, and what they are parts of it."""
    return dict(zip(part_names(raw.name, raw.parts), raw.parts, strict=True)) if raw.kind == "date" else {raw.name: ""}


def _is_text(column: str, encoder: Encoder) -> bool:
    raw = _raw_of(column, encoder)
    return raw.kind in ("text", "truth") or _given_by(raw)[column] in TEXT_PARTS
