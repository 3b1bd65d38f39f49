"""Images as JPEG or PNG bytes and back, by Pillow, which is an extra."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from raybench.errors import UnsupportedError

ENCODER_VERSION: Final = 1
"""Part of prepared data's identity: to be raised when `encoded` gives other bytes of the same image."""
_JPEG_QUALITY: Final = 90
_CHANNELS: Final = 3


class UndecodableError(ValueError):
    """Bytes that are no image of the kind that is expected, with the reason."""


def encoded(pixels: npt.NDArray[np.uint8], image_format: str) -> bytes:
    """An image (3, H, W) as `jpeg`, of quality 90 without subsampled colours, or as `png`, which loses nothing."""
    image = _pillow().fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    into = io.BytesIO()
    if image_format == "png":
        image.save(into, format="PNG", compress_level=1)
    else:
        image.save(into, format="JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return into.getvalue()


def decoded(content: bytes, height: int, width: int) -> npt.NDArray[np.uint8]:
    """The pixels, (3, height, width).

    Raises:
        UndecodableError: the bytes are cut or damaged, no JPEG or PNG, or an image of another size.
    """
    pillow: Any = _pillow()
    try:
        with pillow.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
            if image.size != (width, height):      # before a pixel is decoded: the size is the file's own claim
                raise UndecodableError(f"is {image.size[0]} x {image.size[1]} pixels instead of {width} x {height}")
            pixels: npt.NDArray[np.uint8] = np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        if isinstance(error, UndecodableError):
            raise
        raise UndecodableError(f"cannot be decoded ({' '.join(str(error).split())})") from error
    assert pixels.shape == (height, width, _CHANNELS)
    planes: npt.NDArray[np.uint8] = pixels.transpose(2, 0, 1)
    return planes


def need_pillow() -> None:
    """Say what is missing before anything is written or read.

    Raises:
        UnsupportedError: Pillow is not installed here.
    """
    _pillow()


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedError("source images needs Pillow on every node: pip install 'raybench[images]'") from error
    return Image
