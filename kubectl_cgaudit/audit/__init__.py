"""From predictions to findings: what a migration changes, for whom, how surely."""
