"""What can be asked of a problem: its answer, why not, choices, fronts, certainty."""
