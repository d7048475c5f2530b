"""What a run leaves behind: tables for people, CSV and JSON for scripts."""
