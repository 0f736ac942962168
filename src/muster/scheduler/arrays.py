"""The array types of the columnar core, and the two rules for growing them.

Columns have a slot per node along their last axis. A caller that judges some nodes passes `Slots`:
an array of slot numbers (of any number of dimensions), or a slice for all of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Slots = Ints | slice


def grown(array: npt.NDArray[np.generic], length: int) -> npt.NDArray[np.generic]:
    """The array with its last axis extended by zeros to the given length."""
    out = np.zeros((*array.shape[:-1], length), dtype=array.dtype)
    out[..., : array.shape[-1]] = array
    return out


def with_rows(array: Ints, rows: int) -> Ints:
    """The array with its first axis extended by zeros to the given number of rows."""
    out = np.zeros((rows, array.shape[1]), dtype=array.dtype)
    out[: array.shape[0]] = array
    return out
