"""What every worker of a group does: serve trials from the mailbox, one after the other, until told to stop."""

from __future__ import annotations

import faulthandler
import os
import socket
import time
import traceback
from pathlib import Path
from typing import Any

from raybench.cluster.deadline import deadline, stack_file
from raybench.cluster.messages import Done, Hello, Order


def serve(settings: dict[str, Any]) -> None:
    """The training function of a worker group. `settings`: `mailbox`, `sweep_run_id`, `threads`,
    `start_limit_s`: a worker that is not ready by then (its first collective hangs, say) ends itself.

    A failed trial ends the worker, and with it the group: after an error nothing in the process can be trusted.
    """
    import ray
    import torch

    from raybench.engine.session import Session

    faulthandler.dump_traceback_later(settings["start_limit_s"], exit=True)
    torch.set_num_threads(settings["threads"])
    mailbox = settings["mailbox"]
    place, hello = _introduce(settings)
    session = Session(place)
    faulthandler.cancel_dump_traceback_later()
    ray.get(mailbox.hello.remote(hello))
    index = 0
    while (order := ray.get(mailbox.next.remote(index))) is not None:
        index += 1
        _serve_one(mailbox, session, order, place.rank)


def _serve_one(mailbox: Any, session: Any, order: Order, rank: int) -> None:
    """Run one trial under its deadline and tell how it ended; an error is told, then raised."""
    import ray

    from raybench.cluster.outcome import describe

    taken_s = time.perf_counter()
    try:
        with deadline(order.deadline_s, stack_file(order.stack_dir, order.trial_uid, rank)):
            streams = () if order.streams is None else ray.get(order.streams)[rank]
            result = session.run(order.config, streams)
    except BaseException as error:
        elapsed_s, host = time.perf_counter() - taken_s, socket.gethostname()
        workload, trace = order.config.workload, traceback.format_exc()
        failure = describe(error, trace, workload, rank=rank, host=host, elapsed_s=elapsed_s)
        ray.get(mailbox.failed.remote(order.trial_uid, failure))
        raise RuntimeError("the trial failed; the worker ends") from error      # a SystemExit would end it too quietly
    ray.get(mailbox.done.remote(order.trial_uid, rank, Done(result=result, clean=session.clean)))


def _introduce(settings: dict[str, Any]) -> tuple[Any, Hello]:
    """Where this rank runs, for the session and for the driver."""
    import ray.train
    import torch
    import torch.distributed

    from raybench.cluster.code_version import source_hash
    from raybench.cluster.interface import chosen_interface
    from raybench.engine.environment import node_facts
    from raybench.engine.memory import room_bytes
    from raybench.engine.place import Place
    from raybench.version import __version__

    context, runtime = ray.train.get_context(), ray.get_runtime_context()
    device = ray.train.torch.get_device()
    node = node_facts(sweep_run_id=settings["sweep_run_id"], address=ray.util.get_node_ip_address())
    place = Place(
        rank=context.get_world_rank(),
        world_size=context.get_world_size(),
        local_rank=context.get_local_rank(),
        device=str(device),
        host=node.host,
        node_key=node.node_key,
    )
    backend = torch.distributed.get_backend() if torch.distributed.is_initialized() else None
    hello = Hello(
        rank=place.rank,
        pid=os.getpid(),
        node_id=runtime.get_node_id(),
        node=node,
        process_age_s=process_age_s(),
        raybench_version=__version__,
        source_hash=source_hash(),
        cpu_threads=torch.get_num_threads(),
        device_kind=device.type,
        gpu_model=torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        backend=backend,
        network_interface=chosen_interface(backend),
        torch_version=str(torch.__version__),
        cuda_version=torch.version.cuda,
        handle=runtime.current_actor,
        memory_room_bytes=room_bytes(device, context.get_local_world_size()),
    )
    return place, hello


def process_age_s() -> float:
    """Seconds since the operating system started this process, on the clock that no time correction moves."""
    started_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")
