"""The output of runs: tables and pages for people, CSV and JSON for scripts."""
