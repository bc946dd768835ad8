"""The exit codes that say something about what was read; those of errors are in errors.py."""

INCOMPLETE = 3
"""Done, but something could not be read."""
FOUND = 4
"""What the command was asked to look for is there: findings of --fail-on, a move, a difference. It wins over 3."""
