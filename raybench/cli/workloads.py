"""`raybench workloads`."""

from __future__ import annotations

from raybench.cli.options import Json, NoPlugins


def workloads(*, no_plugins: NoPlugins = False, as_json: Json = False) -> None:
    """List what can be run: every workload and preset, with parameters, FLOPs and memory."""
    from raybench.report.output import print_parts, print_rows, stdout_width
    from raybench.report.tables import workload_table
    from raybench.workloads.describe import preset_rows

    if as_json:
        print_rows(preset_rows(no_plugins=no_plugins))
    else:
        said = "At each workload's defaults, on one worker; memory is an estimate for that batch."
        print_parts(said, "", workload_table(list(preset_rows(no_plugins=no_plugins)), stdout_width()))
