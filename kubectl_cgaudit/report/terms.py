"""One paragraph a term, for readers who know Kubernetes and no cgroups. Plain text, not escaped."""

TERMS: dict[str, str] = {
    "cgroup": (
        "The kernel groups processes in a tree, and each cgroup has a number that says how much CPU it gets beside its "
        "siblings: cpu.shares on cgroup v1 (2 to 262144, default 1024), cpu.weight on v2 (1 to 10000, default 100). The "
        "number works only when CPU is scarce, and only against the cgroups beside it: twice the weight of a sibling is "
        "twice its CPU, whatever other branches of the tree hold."
    ),
    "kubepods and system.slice": (
        "At the root of a node's tree stand kubepods, with all pods in it, and system.slice, with the kubelet, the "
        "container runtime, sshd and the other services. The kubelet gives kubepods a number for the node's allocatable "
        "CPU; system.slice keeps the default unless somebody sets it. Their ratio decides who gets the CPU of a full node. "
        "Because v2 starts from another default, the same node has another ratio on v2: about 0.39 : 1 for each "
        "allocatable CPU, where v1 has 1 : 1."
    ),
    "effective share": (
        "The fraction of the node's CPU that a pod or container gets when everything on the node wants CPU at once: the "
        "product, from the root of the tree down, of its part among its siblings. Where siblings are idle it gets more. "
        "It says who wins when the node is full, not what anyone uses today."
    ),
    "against system": (
        "A pod's effective share divided by that of system.slice. If it falls, the pod wins less often over system "
        "processes than it does now; that is what this audit calls losing CPU priority."
    ),
    "QoS class": (
        "Guaranteed, Burstable or BestEffort, from a pod's requests and limits. Burstable and BestEffort pods each lie in a "
        "cgroup of their own inside kubepods; Guaranteed pods lie beside these two. The kubelet writes all of these numbers."
    ),
    "inside a pod": (
        "A container competes with the other containers of its own pod, and with nothing else. The container runtime (runc "
        "or crun, through its handler) writes these numbers, and only these. Since runc 1.3.2 and crun 1.23 it converts "
        "requests with another formula: small containers, such as sidecars, get more beside large ones."
    ),
    "nominal weight": (
        "The number in the file cpu.weight or cpu.shares, and how many times the default it is. It is no share of CPU: "
        "it counts only beside its siblings. It matters to programs that read the file and draw conclusions."
    ),
    "how sure": (
        "certain: measured on the node. stated: the states file says so. likely: a verified rule about this platform and "
        "release. probable: the platform's default, which may have been overridden; that case is predicted too, and shown "
        "behind. unknown: nobody says; every possibility was predicted and the range is shown."
    ),
}
