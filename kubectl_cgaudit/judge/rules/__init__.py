"""The findings, one idea a module. A rule looks at a node, or at a pod in every case."""
