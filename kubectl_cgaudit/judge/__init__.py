"""Stage 4: what a migration changes, and what to do about it."""
