"""DataFrames in and out: what a table's columns are as features, its rows as factuals, and answers as tables."""
