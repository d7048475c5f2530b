"""A complete back end for one lever and a linear classifier: a division in rational numbers, hence proven."""

from __future__ import annotations

import math
from fractions import Fraction

from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.solvers import Options, Proposal


class DivisionBackend:
    """Finds the smallest change of the one lever for which weight * value + rest reaches the threshold."""

    name = "division"
    proves = True

    def unavailable(self) -> str | None:
        """None: it needs nothing besides Python."""
        return None

    def why_not(self, instance: Instance) -> str | None:
        """The reason why a problem is refused: whatever :meth:`solve` does not look at is named here."""
        network, features = instance.classifier, instance.features
        plain = all(f.kind == "continuous" and f.domain is None for f in features)
        if not (isinstance(network, ReluNetwork) and network.hidden == 0 and plain):
            return "division solves one layer and continuous features without domain"
        if len(instance.levers) != 1 or instance.scm.edges or instance.plausible:
            return "division solves one lever, independent features, without plausibility"
        if instance.demand != TRUE or instance.scenarios:
            return "division knows no conditions or scenarios"
        return None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """The proposal; its bound is exact, rounded down by one double."""
        ((name, (low, high)),) = instance.levers.items()
        weights, bias = instance.classifier.weights[0][0], instance.classifier.biases[0][0]
        w = dict(zip(instance.columns, map(Fraction, weights), strict=True))
        rest = sum((w[f] * Fraction(instance.factual[f]) for f in w if f != name), Fraction(bias))
        need = instance.accept.needed - rest
        if w[name] * Fraction(high if w[name] > 0 else low) < need:  # no value gives w * value >= need
            return Proposal(None, math.inf, "rigorous")
        nearest = Fraction(min(max(instance.factual[name], low), high))
        if w[name] * nearest < need:
            nearest = need / w[name]
        value, outward = float(nearest), math.inf if w[name] > 0 else -math.inf
        if w[name] * Fraction(value) < need:
            value = math.nextafter(value, outward)
        least = instance.cost_of({name: math.nextafter(value, instance.factual[name])})  # nearest costs more
        return Proposal({name: value}, math.nextafter(float(least), 0.0), "rigorous")


def main() -> None:
    """Register the back end and solve every shipped smoke instance that it takes."""
    from milp_recourse import read_instance, solve
    from milp_recourse.formats.instances_path import instance_files
    from milp_recourse.reports.instances import compare
    from milp_recourse.solvers import register

    register("division", DivisionBackend)
    for file in instance_files("smoke"):
        instance = read_instance(file)
        if instance.levers and DivisionBackend().why_not(instance) is None:
            result = solve(instance, backend="division")
            verdict = compare(instance.reference, result)
            print(f"{instance.name:20}{result.status.value:12}{result.cost!s:19}{verdict}")


if __name__ == "__main__":
    main()
