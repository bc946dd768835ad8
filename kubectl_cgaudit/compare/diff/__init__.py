"""What changed between two audits: which predictions came true, and what moved that nobody predicted."""
