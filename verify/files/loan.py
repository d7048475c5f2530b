"""The two built-in Loan models as equations, number by number as ``docs/formats.md`` prints them."""

from __future__ import annotations

from typing import Any

LOAN_FEATURES = ["gender", "age", "education", "amount", "duration", "income", "savings"]


def _mechanism(equation: Any, sd: float) -> dict[str, Any]:
    return {"equation": equation, "link": None, "noise": {"kind": "normal", "sd": sd}}


def _loan(amount: list[Any], savings_sd: float) -> dict[str, Any]:
    not_gender = {"sum": [1.0, {"product": [-1.0, "gender"]}]}
    education: list[Any] = [-1.0, {"product": [0.5, "gender"]}, {"sigmoid": {"product": [0.1, "age"]}}]
    duration: list[Any] = [-1.0, {"product": [0.1, "age"]}, {"product": [2.0, not_gender]}, "amount"]
    income = [
        -4.0,
        {"product": [0.1, {"sum": ["age", 35.0]}]},
        {"product": [2.0, "gender"]},
        {"product": ["gender", "education"]},
    ]
    return {
        "gender": {"equation": 0.0, "link": None, "noise": {"kind": "bernoulli", "p": 0.5}},
        "age": {"equation": -35.0, "link": None, "noise": {"kind": "gamma", "shape": 10.0, "scale": 3.5}},
        "education": _mechanism({"sum": education}, 0.5)
        | {"link": {"kind": "sigmoid", "offset": -0.5, "scale": 1.0}},
        "amount": _mechanism({"sum": [*amount, not_gender]}, 2.0),
        "duration": _mechanism({"sum": duration}, 3.0),
        "income": _mechanism({"sum": income}, 2.0),
        "savings": _mechanism({"sum": [-4.0, {"product": [1.5, {"relu": "income"}]}]}, savings_sd),
    }


_AGE_LESS_5 = {"sum": ["age", {"product": [-1.0, 5.0]}]}
_5_LESS_AGE = {"sum": [5.0, {"product": [-1.0, "age"]}]}

LOANS = {
    "loan": _loan([1.0, {"product": [0.01, {"product": [_AGE_LESS_5, _5_LESS_AGE]}]}], 5.0),
    "loan-as-printed": _loan([{"product": [0.01, {"product": [_AGE_LESS_5, _AGE_LESS_5]}]}], 0.5),
}
