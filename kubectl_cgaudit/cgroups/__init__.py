"""How Kubernetes turns a spec into cgroups: the arithmetic that every stage rests on."""
