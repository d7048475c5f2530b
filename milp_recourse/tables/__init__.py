"""DataFrames in and out: columns as features, rows as factuals, answers as tables."""
