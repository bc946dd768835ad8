"""`verify`: the differences between what is predicted and what the kubelets show."""

import msgspec
from tabulate import tabulate

from kubectl_cgaudit.judge.verify import Difference, Verification
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.words import counted


def as_json(result: Verification) -> str:
    """The verification for programs."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n"


def as_text(result: Verification) -> str:
    """The differences as a table, and what was compared."""
    if not result.nodes:
        return "\n".join(["Nothing could be compared.", *_left_out(result)]) + "\n"
    what = f"{counted(result.compared, 'cgroup')} of {counted(len(result.nodes), 'node')}"
    count = len(result.differences)
    lines = [f"{what} compared with their kubelets: {counted(count, 'difference') if count else 'no difference'}."]
    if result.unmeasured:
        shown = "was" if result.unmeasured == 1 else "were"
        lines.append(
            f"{counted(result.unmeasured, 'predicted cgroup')} {shown} not shown: ended since, or not created yet."
        )
    lines.append("Kubelets do not show system.slice unless they are told to: its weight is not verified.")
    lines += _left_out(result)
    if result.differences:
        rows = [_row(difference) for difference in result.differences]
        headers = ["NODE", "LEVEL", "CGROUP OF", "PREDICTED", "MEASURED"]
        table = tabulate(rows, headers, tablefmt="plain", disable_numparse=True)
        lines += ["", *(line.rstrip() for line in table.splitlines()), "", _MEANING]
    return "\n".join(lines) + "\n"


def _left_out(result: Verification) -> list[str]:
    return [f"Not compared: {visible(node)}: {visible('; '.join(why))}." for node, why in result.not_compared.items()]


_MEANING = (
    "A container that differs was created before its runtime was upgraded, or its node runs another runtime than was said:\n"
    "restart it, or correct --states. A pod or slice that differs was written by a kubelet with other settings."
)


def _row(difference: Difference) -> list[str]:
    names = [difference.namespace, difference.pod, difference.container]
    of = "/".join(name for name in names if name) or difference.cgroup
    predicted = " or ".join(str(value) for value in difference.predicted)
    measured = "no weight" if difference.measured is None else str(difference.measured)
    return [visible(difference.node), difference.level, visible(of), predicted, measured]
