"""The policy file: thresholds, severities and exceptions that a team agreed on."""
