"""Draw one refused person, the accepted region, and the least change that crosses into it.

Needs `.[sklearn]`, and with a file name for the picture `.[plots]`.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse

rng = np.random.default_rng(0)
X = pd.DataFrame({"income": rng.uniform(10, 90, 2000), "loan": rng.uniform(5, 60, 2000)}).round(1)
pays_back = (X["loan"] < 8 + 0.0075 * X["income"] ** 2) & ~((X["income"] - 48).abs() < 9)
model = make_pipeline(StandardScaler(), MLPClassifier((16, 16), max_iter=2000, random_state=1))
model.fit(X, pays_back)

person = pd.DataFrame({"income": [40.0], "loan": [30.0]})
answers = Recourse(model, X).certify(person)
[after] = answers.counterfactuals[["income", "loan"]].to_numpy()
cost = answers.table["cost"].iloc[0]
print(answers.changes.to_string())
print(answers.table[["status", "cost", "lower_bound"]].to_string())

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    across, up = np.meshgrid(np.linspace(10, 90, 600), np.linspace(5, 60, 600))
    points = pd.DataFrame({"income": across.ravel(), "loan": up.ravel()})
    chance = model.predict_proba(points)[:, 1].reshape(across.shape)
    widths = X.max() - X.min()

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    axes.contourf(across, up, chance, levels=[0, 0.5, 1], colors=["#f6e3df", "#dcefe0"])
    axes.contour(across, up, chance, levels=[0.5], colors=["#4d8b5c"], linewidths=1)
    reach = cost * widths["income"], cost * widths["loan"]  # of changes in one feature alone
    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]]) * reach + (40, 30)
    axes.fill(*corners.T, facecolor="white", alpha=0.55)
    axes.plot(*corners.T, color="#33527a", linewidth=1.2, linestyle="--")
    axes.annotate("", after, (40, 30), arrowprops={"arrowstyle": "-|>", "color": "black"})
    axes.plot(40, 30, "o", color="#a33b2c", markersize=7)
    axes.plot(*after, "o", color="#2f7a45", markersize=7)
    axes.annotate("refused", (40, 30), (-8, 8), textcoords="offset points", ha="right")
    axes.annotate("least change", after, (9, -4), textcoords="offset points")
    axes.text(40, 30 + reach[1] + 1, "nothing cheaper is accepted: proven", ha="center", color="#33527a")
    axes.text(83, 20, "accepted", ha="right", color="#2f5c3b")
    axes.set(xlabel="income", ylabel="loan", xlim=(10, 90), ylim=(5, 60))
    figure.savefig(sys.argv[1], dpi=150)
