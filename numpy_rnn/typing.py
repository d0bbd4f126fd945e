"""The types that every signature uses."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
MaybeArray: TypeAlias = Any  # an array, or None where the caller knows that it will not be needed
