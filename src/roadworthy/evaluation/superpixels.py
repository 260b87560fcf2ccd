"""SLIC superpixels of scikit-image: the same image always gets the same ones."""

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.core.errors import MissingExtraError


def load_slic() -> Any:
    try:
        from skimage.segmentation import slic
    except ImportError as error:
        raise MissingExtraError(
            "superpixels need scikit-image, which is not installed: pip install 'roadworthy[superpixels]'"
        ) from error
    return slic


_KEPT_BYTES = 256 << 20
_SEGMENTS: OrderedDict[bytes, NDArray[np.int32]] = OrderedDict()
_LOCK = Lock()
_TRIES = 6


def segments(image: NDArray[np.float32], count: int, compactness: float) -> NDArray[np.int64]:
    """Labels `(h, w)` of an image `(h, w, c)`, kept by content: methods, seeds and audits ask for them again."""
    name = hashlib.blake2b(image.tobytes() + repr((image.shape, count, compactness)).encode(), digest_size=16).digest()
    with _LOCK:
        if name in _SEGMENTS:
            _SEGMENTS.move_to_end(name)
            return _SEGMENTS[name].astype(np.int64)
    found = _segments(image, count, compactness)
    kept = found.astype(np.int32)
    with _LOCK:
        _SEGMENTS[name] = kept
        while len(_SEGMENTS) > max(1, _KEPT_BYTES // kept.nbytes):
            _SEGMENTS.popitem(last=False)
    return found


def _segments(image: NDArray[np.float32], count: int, compactness: float) -> NDArray[np.int64]:
    """Labels `(h, w)`, without the gaps that SLIC may leave.

    Of a noisy image SLIC may leave one segment only; it is then cut by position more than by color, until it has two.
    """
    for exponent in range(_TRIES):
        found = load_slic()(
            image, n_segments=count, compactness=compactness * 10**exponent, start_label=0, channel_axis=-1
        )
        if found.max() > found.min():
            break
    return np.unique(found, return_inverse=True)[1].reshape(found.shape).astype(np.int64)
