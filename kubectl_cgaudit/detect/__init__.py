"""Stage 2: what each node runs, and how surely that is known."""
