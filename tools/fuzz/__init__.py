"""Wrong inputs and faults at random, the same for the same seed: `python -m tools.fuzz --help`."""
