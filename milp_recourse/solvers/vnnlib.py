"""The question "is anything accepted at this cost or less?" for tools that verify networks.

An ONNX network takes an action and gives the logit, the cost and the rows of domains; a VNN-LIB property says
between which limits they lie. It is ``sat`` if such an action exists. Inputs are counted from their lowest
values, so that a ReLU hands them on unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BackendUnavailable, BadInput, Unsupported
from milp_recourse.formats.strict_json import write_whole
from milp_recourse.judge import already_good
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.forms import Action, Affine, Elementary
from milp_recourse.program.lower import lower
from milp_recourse.program.neutral_program import Program

Layer = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Form:
    """constant + sum of terms[k] * signal k; a signal is an input or a ReLU, and so at least 0."""

    constant: float = 0.0
    terms: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def total(parts: Iterable[tuple[float, Form]], constant: float = 0.0) -> Form:
        """constant + sum of c * form."""
        terms: dict[int, float] = {}
        for c, form in parts:
            constant += c * form.constant
            for k, d in form.terms.items():
                terms[k] = terms.get(k, 0.0) + c * d
        return Form(constant, terms)


class Layered:
    """A layered ReLU network, built up from forms.

    Attributes
    ----------
    arguments
        Of every signal the argument of its ReLU; None of an input.
    depth
        Of every signal the layer that computes it; 0 of an input.
    """

    def __init__(self) -> None:
        self.arguments: list[Form | None] = []
        self.depth: list[int] = []

    def add(self, argument: Form | None) -> Form:
        """A new signal as a form."""
        below = () if argument is None else argument.terms
        self.depth.append(0 if argument is None else 1 + max((self.depth[k] for k in below), default=0))
        self.arguments.append(argument)
        return Form(0.0, {len(self.arguments) - 1: 1.0})

    def layers(self, outputs: Sequence[Form]) -> list[Layer]:
        """Weights and biases; signals that later layers need are handed on by a ReLU."""
        last = max(self.depth)
        used = dict.fromkeys((k for form in outputs for k in form.terms), last + 1)
        for k, argument in reversed(list(enumerate(self.arguments))):
            for below in argument.terms if argument is not None and k in used else ():
                used[below] = max(used.get(below, 0), self.depth[k])
        known = [k for k, argument in enumerate(self.arguments) if argument is None]
        made = []
        for depth in range(1, last + 1):
            kept = [k for k in used if self.depth[k] <= depth and (self.depth[k] == depth or used[k] > depth)]
            forms = [self.arguments[k] if self.depth[k] == depth else Form(0.0, {k: 1.0}) for k in kept]
            made.append(_dense(forms, known))
            known = kept
        return [*made, _dense(outputs, known)]


def _dense(forms: Sequence[Form | None], known: Sequence[int]) -> Layer:
    place = {k: column for column, k in enumerate(known)}
    weight, bias = np.zeros((len(forms), len(known))), np.zeros(len(forms))
    for row, form in enumerate(forms):
        assert form is not None
        bias[row] = form.constant
        for k, c in form.terms.items():
            weight[row, place[k]] = c
    return weight, bias


@dataclass(frozen=True)
class Question:
    """One network and its property.

    Attributes
    ----------
    actions
        The network's inputs, counted from their lowest values.
    limits
        Lowest and highest value of every output, infinite where there is none.
    """

    actions: tuple[Action, ...]
    layers: list[Layer]
    outputs: list[str]
    limits: list[tuple[float, float]]


def export_vnnlib(instance: Instance, path: str | Path, cost: float) -> list[Path]:
    """Write the question whether anything is accepted at this cost or less.

    Parameters
    ----------
    path
        ``FILE.vnnlib``; the network goes into ``FILE.vnnlib.onnx``. Where sets of features acted on have to
        be told apart, the others go into ``FILE-2.vnnlib`` and so on: the answer is yes if one is ``sat``.

    Returns
    -------
    list of Path
        The properties written.

    Raises
    ------
    BadInput
        The cost is not a number, 0 or more, or a file cannot be written.
    Unsupported
        There is no such network, for a reason that is stated.
    BackendUnavailable
        onnx is not installed.
    """
    if not 0 <= cost < math.inf:
        raise BadInput("--cost", cost, "a number, 0 or more")
    path, written = Path(path), []
    for k, question in enumerate(questions(instance, cost), 1):
        target = path if k == 1 else path.with_name(f"{path.stem}-{k}{path.suffix}")
        write_whole(_onnx(question), target.with_name(target.name + ".onnx"))
        write_whole(
            "\n".join(_property(instance, question, cost)).encode("ascii", "backslashreplace"), target
        )
        written.append(target)
    return written


def questions(instance: Instance, cost: float) -> list[Question]:
    """One question for each set of features acted on that has to be told apart.

    Raises
    ------
    Unsupported
        As for :func:`export_vnnlib`.
    """
    if not isinstance(instance.classifier, ReluNetwork):
        raise Unsupported("VNN-LIB is written of ReLU networks only")
    if already_good(instance):
        raise Unsupported("this person is accepted without any action: there is nothing to ask")
    program = lower(instance)
    every = map(program.fix, program.configurations())
    fixed = [one for one in every if one.actions]
    if not fixed:
        raise Unsupported("no action can be taken: there is nothing to ask")
    for one in fixed:
        _check(one)
    return [_question(one, cost) for one in fixed]


def _check(program: Program) -> None:
    """Raise Unsupported where VNN-LIB or ReLUs cannot say what the program says."""
    stepped = [a.feature for a in program.actions if a.integral or a.lattice is not None]
    if stepped:
        raise Unsupported(f"VNN-LIB has real numbers only, and {stepped[0]} takes whole numbers or steps")
    if program.ball is not None:
        raise Unsupported("VNN-LIB has no squares, which plausibility needs")
    other = [a.function for a in program.atoms if isinstance(a, Elementary) and a.function != "relu"]
    if other:
        raise Unsupported(f"a ReLU network cannot compute the function {other[0]}, which the problem has")
    if program.demand != TRUE:
        raise Unsupported("conditions with alternatives are not written to VNN-LIB")
    if any(term.prices.square or term.prices.largest for term in program.cost_terms):
        raise Unsupported("VNN-LIB has no squares and maxima: the cost must be l1, l0 or made of these")


def _question(program: Program, cost: float) -> Question:
    net = Layered()
    atoms: list[Form] = []

    def form(affine: Affine) -> Form:
        parts = ((float(c), atoms[k]) for k, c in affine.terms.items())
        return Form.total(parts, float(affine.constant))

    inputs = {id(a): Form.total([(1.0, net.add(None))], a.lower) for a in program.actions}
    for atom in program.atoms:
        if isinstance(atom, Action):
            atoms.append(inputs[id(atom)])
        elif isinstance(atom, Elementary):
            atoms.append(net.add(form(atom.argument)))
    price, fixed = [], 0.0
    for term in program.cost_terms:
        rate, delta = float(term.prices.linear / term.unit), form(term.delta)
        price += [(rate, net.add(Form.total([(sign, delta)]))) for sign in (1.0, -1.0)] if rate else []
        fixed += float(term.prices.fixed)
    outputs = [*(form(row.form) for row in program.rows), Form.total(price, fixed)]
    values = [form(column) for column in program.columns]
    assert isinstance(program.classifier, ReluNetwork)
    layers = list(zip(program.classifier.weights, program.classifier.biases, strict=True))
    for k, (weight, bias) in enumerate(layers):
        sums = [
            Form.total(((float(w), v) for w, v in zip(row, values, strict=True) if w), float(b))
            for row, b in zip(weight, bias, strict=True)
        ]
        values = [net.add(one) for one in sums] if k + 1 < len(layers) else sums
    logit = float(program.accept.needed), math.inf
    names = ["the logit", *(row.name for row in program.rows), "the cost"]
    limits = [logit, *((row.lower, row.upper) for row in program.rows), (-math.inf, cost)]
    return Question(program.actions, net.layers([*values, *outputs]), names, limits)


def _onnx(question: Question) -> bytes:
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        needs = "VNN-LIB export: onnx is not installed; pip install 'milp-recourse[onnx]'"
        raise BackendUnavailable(needs) from None
    nodes: list[Any] = []
    constants: list[Any] = []
    name, last = "X", len(question.layers) - 1
    for k, layer in enumerate(question.layers):
        numbers = (layer[0].T, f"W{k}"), (layer[1], f"b{k}")
        constants += [numpy_helper.from_array(values.astype(np.float32), given) for values, given in numbers]
        nodes.append(helper.make_node("MatMul", [name, f"W{k}"], [f"M{k}"]))
        name = "Y" if k == last else f"A{k}"
        nodes.append(helper.make_node("Add", [f"M{k}", f"b{k}"], [name]))
        if k < last:
            nodes.append(helper.make_node("Relu", [name], [f"R{k}"]))
            name = f"R{k}"
    ends = [("X", len(question.actions)), ("Y", len(question.outputs))]
    infos = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [1, size]) for end, size in ends]
    graph = helper.make_graph(nodes, "recourse", infos[:1], infos[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    written: bytes = model.SerializeToString()
    return written


def _property(instance: Instance, question: Question, cost: float) -> Iterator[str]:
    named = f" of {instance.name}" if instance.name else ""
    yield f"; milp-recourse{named}: is anything accepted at a cost of at most {cost!r}? sat: yes"
    yield "; The network has float32 weights, so an answer is a witness and no proof."
    for k, action in enumerate(question.actions):
        yield f"; X_{k}: the value that the action sets {action.feature!r} to, less {action.lower!r}"
    for k, name in enumerate(question.outputs):
        yield f"; Y_{k}: {name}"
    yield from (f"(declare-const X_{k} Real)" for k in range(len(question.actions)))
    yield from (f"(declare-const Y_{k} Real)" for k in range(len(question.outputs)))
    ends = [(f"X_{k}", 0.0, a.upper - a.lower) for k, a in enumerate(question.actions)]
    ends += [(f"Y_{k}", *limits) for k, limits in enumerate(question.limits)]
    for name, low, high in ends:
        for sign, end in ((">=", low), ("<=", high)):
            if math.isfinite(end):
                yield f"(assert ({sign} {name} {Decimal(repr(end)):f}))"
    yield ""
