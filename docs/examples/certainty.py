"""One refused person: actions that differ, and the cheapest that works even if its targets are missed.

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
answers = Recourse(model, X, cost="l2-squared").certify(person)
ways = answers.choices(0, count=3, differ="distance", apart=0.2)
missed = {"income": 4.0, "loan": 3.0}
certain = answers.robust(0, missed=missed)


def text(values):
    """Values by feature as text, with two decimals."""
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


for number, way in ways.iterrows():
    print(f"way {number}: {way['status']} at cost {way['cost']:.5f}: {text(way['action'])}")
print(f"certain: {certain['status']} at cost {certain['cost']:.5f}: {text(certain['action'])}")
print(f"lowest logit found: {certain['worst']['output']:.5f} where {text(certain['worst']['missed'])}")

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    across, up = np.meshgrid(np.linspace(10, 90, 600), np.linspace(5, 60, 600))
    points = pd.DataFrame({"income": across.ravel(), "loan": up.ravel()})
    chance = model.predict_proba(points)[:, 1].reshape(across.shape)
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    axes.contourf(across, up, chance, levels=[0, 0.5, 1], colors=["#f6e3df", "#dcefe0"])
    axes.contour(across, up, chance, levels=[0.5], colors=["#4d8b5c"], linewidths=1)
    axes.plot(40, 30, "o", color="#a33b2c", markersize=7)
    axes.annotate("refused", (40, 30), (-8, 8), textcoords="offset points", ha="right")
    for number, way in ways.iterrows():
        end = [way["action"].get(name, start) for name, start in (("income", 40.0), ("loan", 30.0))]
        axes.annotate("", end, (40, 30), arrowprops={"arrowstyle": "-|>", "color": "#33527a"})
        axes.plot(*end, "o", color="#33527a", markersize=6)
        axes.annotate(f"way {number}", end, (7, -10), textcoords="offset points", color="#33527a")
    acted = [name in certain["action"] for name in missed]
    middle = np.array(
        [certain["action"].get(name, start) for name, start in (("income", 40.0), ("loan", 30.0))]
    )
    half = np.array(list(missed.values())) * acted
    box = Rectangle(middle - half, *(2 * half), fill=False, edgecolor="#2f7a45", linewidth=1.4)
    axes.add_patch(box)
    axes.plot(*middle, "o", color="#2f7a45", markersize=7)
    axes.annotate("certain", middle, (8, 4), textcoords="offset points", color="#2f5c3b")
    axes.text(83, 10, "accepted", ha="right", color="#2f5c3b")
    axes.set(xlabel="income", ylabel="loan", xlim=(10, 90), ylim=(5, 60))
    figure.savefig(sys.argv[1], dpi=150)
