"""The release archives: every dependency inside, so that a machine needs Python and nothing else."""
