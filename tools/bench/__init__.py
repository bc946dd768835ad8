"""Benchmarks against the simulated cluster: every figure has a baseline that ran in the same run, beside it."""
