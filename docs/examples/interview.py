"""An interview on a pipeline of your own; the person prefers whatever changes their income least."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse
from milp_recourse.preferences import Interview

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {"income": rng.gamma(4, 9, 2000), "debt": rng.gamma(2, 10, 2000), "savings": rng.gamma(2, 4, 2000)}
)
repaid = X["income"] - 0.8 * X["debt"] + 0.6 * X["savings"] + rng.normal(0, 5, 2000) > 22
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, repaid)

recourse = Recourse(pipeline, X, cost="l2-squared")
person = X[pipeline.predict(X) == 0].iloc[[0]]
interview = Interview(recourse, person, budget=8)
while (question := interview.ask()) is not None:
    left, right = (side.counterfactual["income"] for side in (question.left, question.right))
    interview.tell("left" if left <= right else "right")
result = interview.recommend()
print(result.status.value, {name: round(value, 1) for name, value in result.action.items()})
after = person.assign(**result.action)
print("the pipeline says", pipeline.predict(person)[0], "before and", pipeline.predict(after)[0], "after")
print(
    f"whatever was meant within {len(interview.answers)} answers, nothing is more than "
    f"{interview.regret().cheaper:.1%} cheaper"
)
