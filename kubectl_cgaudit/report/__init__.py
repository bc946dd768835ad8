"""Stage 5: one renderer a format. A renderer turns an audit into text, and does nothing else."""
