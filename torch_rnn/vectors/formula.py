"""The numbers that go into the golden vectors, by a formula that needs no file and no floating-point arithmetic."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numpy_rnn.typing import Array

MULTIPLIER, MODULUS = 75, 65537  # 75 generates every remainder but 0: the numbers come round after 65536

TEXT = (
    "Start with s = seed. For each entry, in row-major order: s = 75 * s mod 65537; the entry is "
    "scale * (floor(s / 256) - 128) / 128, plus, where the tensor has offsets, the offset of its gate: there is one "
    "for each of the G equal blocks of rows. Every scale is a power of two, so each entry is exact in float64 "
    "and in float32, and without an offset in float16 and bfloat16 too. All products stay below 2^23."
)


def seed_of(name: str) -> int:
    """Return the start for the tensor ``name``, from 1 to 65536.

    >>> seed_of("lstm/weight_hh_l0")
    60765
    """
    return 1 + zlib.crc32(name.encode()) % (MODULUS - 1)


def fill(shape: Sequence[int], source: Mapping[str, Any]) -> Array:
    """Return the float64 array that the formula gives, from the ``source`` of the manifest.

    >>> fill((2, 3), {"seed": 1000, "scale": 0.5})
    array([[-0.359375  ,  0.328125  , -0.296875  ],
           [-0.24609375, -0.30859375, -0.14453125]])
    """
    s, entries = int(source["seed"]), []
    for _ in range(math.prod(shape)):
        s = MULTIPLIER * s % MODULUS
        entries.append(source["scale"] * (s // 256 - 128) / 128)
    array = np.array(entries).reshape(tuple(shape))
    if "offsets" in source:
        blocks = np.split(array, len(source["offsets"]))
        array = np.concatenate([block + offset for block, offset in zip(blocks, source["offsets"], strict=True)])
    return array
