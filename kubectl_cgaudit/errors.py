"""The errors the library raises. Each message is one sentence that ends with what to do next."""


class CgauditError(Exception):
    """Something could not be done; the command line exits with 1."""

    exit_code = 1


class InputError(CgauditError):
    """A file or an API answer does not hold what it should."""


class ClusterError(CgauditError):
    """The cluster could not be asked: no kubeconfig, no connection, no permission."""


class PipeClosedError(Exception):
    """Whoever read standard output is gone (`| head`)."""


class NotFoundError(CgauditError):
    """The node or pod that was asked for is not among what was read."""


class UnreadError(NotFoundError):
    """It may be there all the same: something could not be read, and the command line exits as for that."""

    exit_code = 3


class UsageError(CgauditError):
    """What the user wrote (a flag, a states file, a target) is wrong; the command line exits with 2."""

    exit_code = 2


class InterruptedAuditError(CgauditError):
    """The user broke off the reading; the command line exits with 130."""

    exit_code = 130

    def __init__(self, last: str) -> None:
        super().__init__(
            f"interrupted after {last}; nothing was written" if last else "interrupted; nothing was written"
        )
