"""The compiled engine: branch and bound for ReLU networks, one applicant at a time."""
