"""What can go wrong through no fault of raybench's code: each class is one sentence and one exit code."""


class RaybenchError(Exception):
    """A problem that is told to the user in one line; the command ends with `exit_code`."""

    exit_code = 1


class UsageError(RaybenchError):
    """A command, option or argument that cannot be carried out as written."""

    exit_code = 2


class SweepError(UsageError):
    """A sweep file with mistakes: `str()` is one line a mistake, `file:line:column path: what; did you mean`."""


class ClusterError(RaybenchError):
    """The Ray that was asked for cannot be joined or does not fit raybench."""

    exit_code = 3


class StoreError(RaybenchError):
    """Results could not be written or read."""

    exit_code = 4


class DataError(RaybenchError):
    """Prepared data is missing, cut, altered or foreign; names the file and the cure. The attempt ends `data_error`."""


class UnsupportedError(RaybenchError):
    """The chip or this torch cannot do what was asked. The attempt ends `infeasible`, `error_type` `unsupported`."""


class GpuBusyError(RaybenchError):
    """Other processes hold memory on the GPU. The attempt ends `gpu_busy`."""


class ComparisonError(RaybenchError):
    """Rows that must not be compared, with the reason."""
