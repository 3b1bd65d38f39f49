"""`raybench workloads`."""

from __future__ import annotations

from raybench.cli.options import All, Json, NoPlugins


def workloads(*, no_plugins: NoPlugins = False, every: All = False, as_json: Json = False) -> None:
    """List what can be run: every workload and preset, with parameters, FLOPs and memory."""
    from raybench.report.output import print_left, print_parts, print_rows, stdout_width
    from raybench.report.tables import few_presets, workload_table
    from raybench.workloads.describe import preset_rows

    rows = list(preset_rows(no_plugins=no_plugins))
    if as_json:
        print_rows(rows)
        return
    shown = rows if every else few_presets(rows)
    said = "At each workload's defaults, on one worker; memory is an estimate for that batch."
    print_parts(said, "", workload_table(shown, stdout_width()))
    print_left(len(rows) - len(shown))
