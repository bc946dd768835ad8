"""The findings, one idea a module. Each rule is a function from a Context to findings."""
