"""A reference model: the cgroup tree of a node before and after a migration, a second time and in plain words.

It is written from the documents alone, to be obviously right and not fast, and must never import from kubectl_cgaudit:
what both say independently is hardly wrong. `clusters.py` makes random clusters, `audit.py` says what becomes of them,
and `answers.py` compares that with what the tool says.
"""
