"""What to do where a file is of no use."""

COMMAND = "kubectl get nodes,pods -A -o json"
SAVE = f"save it with: {COMMAND}"


def no_object(source: str, *, audit: bool) -> str:
    """What to say of a file without a kind in it; `audit` if it is what `-o json` or `-o yaml` wrote."""
    if audit:
        return f"{source} is a saved audit, not a cluster; write it in other formats with: kubectl cgaudit report FILE"
    return f"{source} holds no Kubernetes object (there is no kind in it); {SAVE}"


def no_item(source: str, place: str, document: int) -> str:
    """What to say of an entry of a List that says no kind, at a place such as `items[3]`; documents count from 0."""
    where = f" of document {document + 1}" if document else ""
    return f"{source}: {place}{where} is no Kubernetes object with a kind; correct it, or {SAVE}"


def is_list(kind: str) -> bool:
    """Whether objects of this kind may hold others in `items`: then they are a list in a list, as `jq -s` makes it of files."""
    return kind.endswith("List")
