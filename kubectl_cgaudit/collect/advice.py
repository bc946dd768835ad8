"""What to do where a file is of no use."""

COMMAND = "kubectl get nodes,pods -A -o json"
SAVE = f"save it with: {COMMAND}"
