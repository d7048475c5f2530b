"""The model's own ``predict``, to compare with rows before and after their actions.

Tables of other libraries, and rows as dictionaries, become pandas DataFrames here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.readers import Reading, model_columns
from milp_recourse.readers.classes import Interval, Target
from milp_recourse.readers.from_onnx import graph_of, is_onnx
from milp_recourse.readers.from_xgboost import booster_objective
from milp_recourse.readers.refusal import listed
from milp_recourse.tables.columns import got_repr, is_missing, position

Predict = Callable[[pd.DataFrame], Any]
Desired = Any
"""A label, ``{"not": label}``, or None for ``classes_[1]``; (low, high) for a regression."""


def desires(reading: Reading) -> Callable[[object], bool]:
    """The function that says whether a predicted label, or number, is what people want.

    It raises BadInput for a label that is no class of the model, since no wish can be compared with it.
    """
    wish, classes = reading.wish, reading.classes

    def wants(predicted: object) -> bool:
        if isinstance(wish, Interval):
            if isinstance(predicted, bool) or not isinstance(predicted, Real):
                raise BadInput("predict", got_repr(predicted), "numbers, which this regression predicts")
            return wish.low <= float(predicted) <= wish.high
        try:
            found = position(classes, predicted)
        except (TypeError, ValueError):  # an array, say
            found = None
        if found is None and isinstance(reading.classifier, AskedModel):
            return not wish.wanted  # a label that a function gives for no row of X
        if found is None:
            raise BadInput(
                "predict", f"the label {got_repr(predicted)}", f"the model's classes {listed(classes)}"
            )
        return (found == wish.index) is wish.wanted

    return wants


def own_predict(model: Any, X: pd.DataFrame, classes: Sequence[object]) -> Predict | None:
    """The model's own prediction as a function from rows like X's to labels; None if it has none.

    Columns are put into the order of the fit, which scikit-learn requires. A torch module is called with the
    columns as one float tensor, and its logits, or probabilities after a closing sigmoid, are turned into
    labels; so are the probabilities, margins or numbers of classes that the boosters of XGBoost and LightGBM
    predict. An ONNX graph is run by onnxruntime, if that is installed.
    """
    kind = type(model).__module__.split(".")[0]
    if is_onnx(model):
        return graph_of(model, X).predict(classes)
    if kind in ("xgboost", "lightgbm") and not hasattr(model, "fit"):
        return _booster(model, kind, model_columns(model, X), classes)
    if hasattr(model, "predict"):
        order = model_columns(model, X)
        return lambda frame: model.predict(frame[order])
    if hasattr(model, "forward") and hasattr(model, "parameters"):
        return _torch(model, classes)
    return None


def own_probability(model: Any, X: pd.DataFrame, target: Target) -> Predict:
    """The model's own predict_proba of the desired class, as a function of rows like X's."""
    order, index = model_columns(model, X), target.index

    def probability(frame: pd.DataFrame) -> Any:
        return np.asarray(model.predict_proba(frame[order]))[:, index]

    return in_types_of(X, probability)


def in_types_of(X: pd.DataFrame, predict: Predict) -> Predict:
    """``predict`` after the columns of its argument have been converted to their types in X.

    Rows may have labels as plain text, or other categories than X. XGBoost refuses a table even for an
    unknown category that no row has.
    """
    dtypes = X.dtypes

    def predict_in_types(frame: pd.DataFrame) -> Any:
        return predict(_retyped(frame, dtypes))

    return predict_in_types


def _retyped(frame: pd.DataFrame, dtypes: pd.Series) -> pd.DataFrame:
    retyped = frame.copy(deep=False)
    for name, wanted in dtypes.items():
        column, dtype = frame[name], wanted
        if column.dtype == wanted:
            continue
        if isinstance(wanted, pd.CategoricalDtype):
            held = [v for v in column.unique().tolist() if not is_missing(v)]
            more = [v for v in held if position(wanted.categories.tolist(), v) is None]
            dtype = pd.CategoricalDtype([*wanted.categories, *more], wanted.ordered)
        elif isinstance(column.dtype, np.dtype) and column.dtype != object:
            continue
        else:  # objects, texts, categories, pandas' own numbers, which have NA for a missing value
            column = column.astype(object).where(column.notna(), np.nan)
            if isinstance(wanted, np.dtype) and wanted.kind in "biu" and column.isna().any():
                dtype = np.dtype(np.float64)  # integer and bool columns cannot hold missing values
        with suppress(TypeError, ValueError):  # a column that cannot be converted stays as it is
            retyped[name] = column.astype(dtype)
    return retyped


@dataclass(frozen=True)
class OwnWord:
    """What the model itself says of rows.

    Attributes
    ----------
    predict
        Its labels.
    wants
        Whether a label is desired.
    probability, least
        The probability of the desired class, and the least that is enough; None where that is not asked.
    """

    predict: Predict
    wants: Callable[[object], bool]
    probability: Predict | None = None
    least: float = 0.0

    def accepts(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Whether the model gives each row what people want, shape (rows,).

        Raises
        ------
        BadInput
            ``predict`` or ``predict_proba`` fails, or ``predict`` does not answer with one of the model's
            classes per row.
        """
        if not len(frame):
            return np.zeros(0, dtype=bool)
        labels = labels_of(self.predict, frame)
        try:  # a wish is looked up among classes, which takes longer than the model: each label once
            each_once = dict.fromkeys((type(label), label) for label in labels)
            known = {each: self.wants(each[1]) for each in each_once}
            wanted = np.array([known[type(label), label] for label in labels], dtype=bool)
        except TypeError:  # labels that cannot be hashed
            wanted = np.array([self.wants(label) for label in labels], dtype=bool)
        if self.probability is not None:
            found = _asked("predict_proba", self.probability, frame)
            wanted &= np.asarray(found, dtype=np.float64) >= self.least  # also float32 probabilities
        return wanted

    def remembering(self) -> OwnWord:
        """The same word, not asked twice in a row about the same rows."""
        asked = None if self.probability is None else remembered(self.probability)
        return replace(self, predict=remembered(self.predict), probability=asked)

    def accepts_each(self, frame: pd.DataFrame) -> list[bool | BadInput]:
        """As :meth:`accepts`, with the error in place of the answer for a row for which ``predict`` fails.

        It can fail for single rows: an encoder may refuse a label of a column that a later step drops. Rows
        are halved until those are found.
        """
        try:
            return list(self.accepts(frame).tolist())
        except BadInput as error:
            if len(frame) == 1:
                return [error]
        half = len(frame) // 2
        return self.accepts_each(frame.iloc[:half]) + self.accepts_each(frame.iloc[half:])


def remembered(predict: Predict, most: int = 256) -> Predict:
    """A function of rows that keeps its last answers."""
    known: dict[bytes, Any] = {}

    def answered(frame: pd.DataFrame) -> Any:
        rows = pickle.dumps(frame)
        if rows not in known:
            if len(known) >= most:
                known.clear()
            known[rows] = predict(frame)
        return known[rows]

    return answered


def labels_of(predict: Predict, frame: pd.DataFrame) -> list[object]:
    """What a function of the model answers for each row.

    Raises
    ------
    BadInput
        It fails, or does not give one answer per row.
    """
    labels = np.asarray(_asked("predict", predict, frame), dtype=object)
    labels = labels.reshape(len(labels), -1) if labels.ndim else labels.reshape(1, 1)
    if labels.shape != (len(frame), 1):
        allowed = f"{len(frame)} labels, one per row"
        raise BadInput("predict", f"an answer of shape {labels.shape}", allowed)
    return list(labels[:, 0].tolist())


def _asked(name: str, function: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> Any:
    """What a function of the model answers; its error as BadInput."""
    try:
        return function(frame)
    except Exception as error:
        raise BadInput(
            name,
            f"{type(error).__name__}: {_first_line(error)}".removesuffix(": "),
            "a function that takes rows like X's"
            + (" (the argument predict can be another one)" if name == "predict" else ""),
        ) from error


def _first_line(error: Exception) -> str:
    """The first line of an error's message, since XGBoost's messages contain stack traces."""
    return (str(error).strip().splitlines() or [""])[0]


def _torch(module: Any, classes: Sequence[object]) -> Predict:
    def predict(frame: pd.DataFrame) -> list[object]:
        import torch

        dtype = next(module.parameters()).dtype
        training = module.training
        module.eval()
        with torch.no_grad():
            rows = torch.tensor(frame.to_numpy(dtype=np.float64), dtype=dtype)
            out = module(rows).detach().numpy()
        module.train(training)
        out = out.reshape(len(frame), -1)
        if out.shape[1] > 1:
            return [classes[k] for k in out.argmax(axis=1).tolist()]
        closed = any(isinstance(layer, torch.nn.Sigmoid) for layer in module.modules())
        threshold = 0.5 if closed else 0.0
        return [classes[int(z >= threshold)] for z in out[:, 0]]

    return predict


def _booster(model: Any, kind: str, order: Sequence[object], classes: Sequence[object]) -> Predict:
    objective = booster_objective(model) if kind == "xgboost" else ""
    threshold = 0.0 if objective == "binary:logitraw" else 0.5  # of a margin or of a probability

    def predict(frame: pd.DataFrame) -> list[object]:
        rows: Any = frame[list(order)]
        if kind == "xgboost":
            import xgboost

            rows = xgboost.DMatrix(rows, enable_categorical=True, feature_names=model.feature_names)
        out = np.asarray(model.predict(rows))
        if not classes:
            return [float(number) for number in out.tolist()]
        if out.ndim == 2:
            return [classes[k] for k in out.argmax(axis=1).tolist()]
        numbers = out if objective == "multi:softmax" else out > threshold
        return [classes[int(k)] for k in numbers.tolist()]

    return predict


def is_polars(table: Any) -> bool:
    """Whether a table is a DataFrame of polars."""
    return type(table).__module__.split(".")[0] == "polars" and hasattr(table, "to_pandas")


def as_frame(table: Any) -> Any:
    """A DataFrame of polars, a Series as one row, or a dictionary as one row, as a DataFrame of pandas.

    Anything else is returned as it is.

    Raises
    ------
    Unsupported
        polars needs pyarrow for it, which is not installed.
    """
    if is_polars(table):
        try:
            return table.to_pandas()
        except ImportError as error:
            raise Unsupported(f"a table of polars needs pyarrow: pip install pyarrow ({error})") from error
    if isinstance(table, pd.Series):
        return table.to_frame().T.infer_objects()
    if isinstance(table, Mapping) and table and not any(isinstance(v, list | tuple) for v in table.values()):
        return pd.DataFrame([dict(table)])
    return table


def asked_with(table: Any, predict: Predict | None) -> Predict | None:
    """A function of rows like the table's, as a function of pandas' DataFrames."""
    if predict is None or not is_polars(table):
        return predict
    import polars

    def converted(frame: pd.DataFrame) -> Any:
        return predict(polars.from_pandas(frame))

    return converted
