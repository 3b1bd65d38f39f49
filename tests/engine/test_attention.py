"""The attention kernel that runs, where the choice is forced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.nn.attention import SDPBackend, sdpa_kernel

from raybench.engine.attention import attention_kernels, require, switch_attention
from raybench.engine.reset import ProcessState
from raybench.engine.session import Session
from raybench.errors import UnsupportedError
from raybench.spec.config import Attention
from raybench.workloads.decoder.model import Decoder
from raybench.workloads.encdec.model import build
from tests.engine.small import OneWeight, encdec, place
from tests.engine.test_decoder import SHAPE, decoder


@pytest.fixture
def restored() -> Iterator[None]:
    """Global switches as they were."""
    state = ProcessState.now()
    yield
    state.restore()


@pytest.mark.parametrize("with_gradients", [False, True])
@pytest.mark.parametrize(
    ("allowed", "expected"), [(SDPBackend.FLASH_ATTENTION, "flash"), (SDPBackend.MATH, "math")]
)
def test_the_kernel_that_is_allowed_is_seen(allowed: SDPBackend, expected: str, with_gradients: bool) -> None:
    """CPU has a flash kernel and the written-out one; without dropout it can run both."""
    model = build(encdec(model=encdec().model.model_copy(update={"dropout": 0.0})))
    batch = torch.zeros(1, 2, 8, dtype=torch.int64)
    with sdpa_kernel(allowed):
        assert attention_kernels(model, batch, nullcontext(), with_gradients=with_gradients) == expected


def test_a_network_without_attention() -> None:
    """Not `math`, but none."""
    assert attention_kernels(OneWeight(), torch.ones(1, 2, 8), nullcontext(), with_gradients=True) is None


@pytest.mark.parametrize(("workload", "asked", "activation_checkpointing"), [
    ("decoder", "flash", "full"), ("decoder", "math", "full"), ("encdec", "math", "full"), ("encdec", "flash", "off"),
])  # fmt: skip
def test_what_is_asked_is_what_runs(workload: str, asked: Attention, activation_checkpointing: Any) -> None:
    """In a whole trial, also where the backward pass computes blocks again; afterwards the choice is torch's."""
    shape = encdec().model.model_copy(update={"dropout": 0.0})
    base = decoder() if workload == "decoder" else encdec(model=shape)
    changes = {"attention": asked, "activation_checkpointing": activation_checkpointing}
    session = Session(place())
    found = session.run(base.model_copy(update=changes))
    assert found.environment.effective_attention == asked
    assert found.steps.loss == pytest.approx(session.run(base).steps.loss, rel=1e-5)
    assert torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.math_sdp_enabled()


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("asked", "flash", "activation_checkpointing"), [("flash", True, True), ("math", False, False)]
)
def test_compiled_code_is_traced_with_the_kernel_asked_for(
    asked: Attention, flash: bool, activation_checkpointing: bool
) -> None:
    """The operators of the compiled forward and backward graphs hold flash attention, or only products and softmax."""
    graphs: list[list[str]] = []

    def noted(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        called = [each for node in graph.graph.nodes for each in (node.target, *node.args)]      # some wrap others
        graphs.append([each.__name__ for each in called if isinstance(each, torch._ops.OpOverload)])
        return make_boxed_func(graph.forward)

    backend = aot_autograd(  # type: ignore[no-untyped-call]
        fw_compiler=noted, bw_compiler=noted, partition_fn=min_cut_rematerialization_partition
    )
    switch_attention(asked)
    model = Decoder(SHAPE, seq_len=8, vocab_size=32, recomputes=activation_checkpointing)
    torch.compile(model, backend=backend, fullgraph=True)(torch.zeros(2, 9, dtype=torch.int64)).backward()
    assert len(graphs) == 2
    forwards = [graph.count("_scaled_dot_product_flash_attention_for_cpu.default") for graph in graphs]
    backwards = [graph.count("_scaled_dot_product_flash_attention_for_cpu_backward.default") for graph in graphs]
    layers = SHAPE.num_layers if flash else 0
    assert forwards == [layers, layers if activation_checkpointing else 0]
    assert backwards == [0, layers]


@pytest.mark.usefixtures("restored")
def test_a_kernel_that_cannot_run_is_an_error_with_torch_s_reason() -> None:
    """Flash attention on CPU has no dropout. It is neither another kernel nor an error of the workload."""
    model = Decoder(SHAPE.model_copy(update={"dropout": 0.1}), seq_len=8, vocab_size=32).train()
    switch_attention("flash")

    def look() -> str | None:
        return attention_kernels(model, torch.zeros(1, 9, dtype=torch.int64), nullcontext(), with_gradients=True)

    with pytest.raises(UnsupportedError, match=r"^attention flash cannot run here: .*do not support non-zero dropout"):
        require("flash", look)


def test_a_network_without_the_kernel_asked_for() -> None:
    """A model that has no attention does not pass for one that has; other errors stay what they are."""
    with pytest.raises(UnsupportedError, match=r"^attention flash cannot be had: this model runs no attention$"):
        require("flash", lambda: None)
    require("auto", lambda: None)

    def broken() -> str | None:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match=r"^shapes do not fit$"):
        require("math", broken)
