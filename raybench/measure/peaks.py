"""What a chip could do at most: dense peaks of each precision, by the exact name its driver gives.

A peak that is a little wrong makes every MFU wrong without a sign, so a name that is not listed has no peak: no
substring search (an L40S is no L40, a slice of an H100 no H100), no default. Peaks are those of NVIDIA's data sheets
without structured sparsity; where a sheet prints the sparse figure only, half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from raybench.spec.names import gpu_words


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One GPU model: dense TFLOP/s by precision, the most power its board may draw in watts, and where it is written.

    `fp32` is without tensor cores. A precision that is missing is one the chip does not have.
    """

    tflops: Mapping[str, float]
    board_power_w: float
    source: str


def chip(gpu_model: str | None) -> Chip | None:
    """The chip of that name, as `torch.cuda.get_device_name` or NVML gives it; None when it is not listed."""
    return None if gpu_model is None else _CHIPS.get(gpu_words(gpu_model))


def peak_flops(gpu_model: str | None, precision: str) -> float | None:
    """Dense peak in FLOP/s of the precision that ran; None when the chip or its precision is not known.

    `bf16_params` says where numbers are kept; the arithmetic is that of bf16.
    """
    found = chip(gpu_model)
    tflops = None if found is None else found.tflops.get(precision.removesuffix("_params"))
    return None if tflops is None else tflops * 1e12


def _chip(fp32: float, tf32: float | None, bf16: float | None, fp16: float, power_w: float, source: str) -> Chip:
    tflops = {"fp32": fp32, "tf32": tf32, "bf16": bf16, "fp16": fp16}
    known = {precision: value for precision, value in tflops.items() if value is not None}
    return Chip(tflops=MappingProxyType(known), board_power_w=power_w, source=f"NVIDIA data sheet, {source}")


# Columns: fp32, tf32, bf16, fp16 in dense TFLOP/s, board power in W.
_GB200 = _chip(80, 1250, 2500, 2500, 1200, "GB200 NVL72, one GPU (halved)")
_B200 = _chip(75, 1100, 2250, 2250, 1000, "HGX B200, one GPU (halved)")
_GH200 = _chip(67, 494.5, 989.5, 989.5, 1000, "GH200 (halved); power is the whole module's")
_H200 = _chip(67, 494.5, 989.5, 989.5, 700, "H200 SXM (halved)")
_H200_NVL = _chip(60, 417.5, 835.5, 835.5, 600, "H200 NVL (halved)")
_H100 = _chip(67, 494.5, 989.5, 989.5, 700, "H100 SXM (halved)")
_H100_NVL = _chip(60, 417.5, 835.5, 835.5, 400, "H100 NVL (halved)")
_H100_PCIE = _chip(51, 378, 756.5, 756.5, 350, "H100 PCIe (halved)")
_A100_SXM = _chip(19.5, 156, 312, 312, 400, "A100 SXM")
_A100_PCIE = _chip(19.5, 156, 312, 312, 300, "A100 PCIe; 250 W with 40 GB")
_A10 = _chip(31.2, 62.5, 125, 125, 150, "A10")
# L40 and L40S are the same silicon: 142 SMs with 512 dense fp16 multiply-adds a clock each. At 2.52 GHz that is
# 142 x 512 x 2 x 2.52e9 = 366 TFLOP/s, the L40S's 362.05 (its sheet's 733 is the sparse one). On the L40, accumulating
# in fp32 runs at half that rate: 142 x 256 x 2 x 2.49e9 = 181.05. Published tables mix the two up both ways.
_L40S = _chip(91.6, 183, 362.05, 362.05, 350, "L40S")
_L40 = _chip(90.5, 90.5, 181.05, 181.05, 300, "L40")
_L4 = _chip(30.3, 60, 121, 121, 72, "L4 (halved)")
_A6000 = _chip(38.7, 77.4, 154.8, 154.8, 300, "RTX A6000 (halved)")
_V100_SXM = _chip(15.7, None, None, 125, 300, "V100 SXM2")
_V100_PCIE = _chip(14, None, None, 112, 250, "V100 PCIe")
_T4 = _chip(8.1, None, None, 65, 70, "T4")

# Left out on purpose: GeForce cards, whose clocks run above the data sheet's, so that a share of it may exceed 1; the
# A10G, for which sources give 70 and 125; slices (MIG), whose share of the chip the name alone does not tell.
_CHIPS: Mapping[str, Chip] = MappingProxyType({
    "gb200": _GB200,
    "b200": _B200,
    "gh200 120gb": _GH200,
    "gh200 480gb": _GH200,
    "gh200 144g hbm3e": _GH200,
    "h200": _H200,
    "h200 nvl": _H200_NVL,
    "h100 80gb hbm3": _H100,
    "h100 nvl": _H100_NVL,
    "h100 pcie": _H100_PCIE,
    "a100 sxm4 40gb": _A100_SXM,
    "a100 sxm4 80gb": _A100_SXM,
    "a100 pcie 40gb": _A100_PCIE,
    "a100 80gb pcie": _A100_PCIE,
    "a10": _A10,
    "l40s": _L40S,
    "l40": _L40,
    "l4": _L4,
    "rtx a6000": _A6000,
    "v100 sxm2 16gb": _V100_SXM,
    "v100 sxm2 32gb": _V100_SXM,
    "v100 pcie 16gb": _V100_PCIE,
    "v100 pcie 32gb": _V100_PCIE,
    "t4": _T4,
})
