"""NumPy, forward and backward written out: the adapter to read first, and to copy from.

Every operation is a method, and so is its gradient: ``<operation>_vjp`` takes ``upstream``, the
gradient with respect to the output, then the arguments of the operation, and returns the gradient
of each argument by name. Composite operations are built from ``self.linear``, ``self.linear_vjp``
and the others, so a subclass that replaces one of them changes all that use it.

Shapes: ``...`` is any number of leading axes, none included; a weight is ``[in, out]``. Arrays are
float64 or float32, and what is returned has the dtype of what was given: constants are Python
floats, which NumPy never promotes to. No argument is written to, and no result shares its memory.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from conformance import Adapter

Array: TypeAlias = npt.NDArray[np.floating[Any]]
Gradients: TypeAlias = dict[str, Array]


class NumpyBackend(Adapter):
    """The operations in plain NumPy, with ``math.erfc`` for the normal distribution.

    NumPy accepts what the specification forbids: a weight of rank 1 or 3, widths of zero, a bias
    of rank 0 or 2 or of width 1, operands of ``+`` that differ in shape. So ``linear`` and
    ``residual_add`` check their arguments themselves and raise ``Rejected``.
    """

    name = "numpy"

    def versions(self) -> dict[str, str]:
        """The version of NumPy."""
        return {"numpy": np.__version__}
