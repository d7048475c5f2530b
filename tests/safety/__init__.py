"""What others leave lying about does not run, nothing is lost, and limits hold."""
