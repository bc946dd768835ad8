"""Predictions held against what is: the cgroup tree of a node, what kubelets show, another moment."""
