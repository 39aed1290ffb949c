"""NumPy, forward and backward written out: the adapter to read first, and to derive from.

Every operation is a method, and so is its gradient: ``<operation>_vjp`` takes ``upstream``, the
gradient with respect to the output, then the arguments of the operation, and returns the gradient
of each argument by name, of each parameter by its own. Composite operations are built from
``self.linear``, ``self.linear_vjp`` and the others, so a subclass that replaces one of them changes
all that use it.

To be read in the order of the documents: ``_numpy_layers.py``, ``_numpy_attention.py``,
``_numpy_decoder.py``, ``_numpy_training.py``.

Shapes: ``...`` is any number of leading axes, none included; B sequences of T tokens, of V
different ones; a weight is ``[in, out]``. Arrays are float64 or float32, tokens and targets int64,
and what is returned has the dtype of what was given: constants are Python floats, which NumPy
never promotes to. No argument is written to, and no result shares its memory.
"""

from __future__ import annotations

import numpy as np

from ._numpy_training import NumpyTraining


class NumpyBackend(NumpyTraining):
    """The operations in plain NumPy.

    NumPy accepts what the specification forbids: a weight of rank 1 or 3, widths of zero, a bias
    of width 1, operands of ``+`` that differ in shape, negative tokens. So operations check their
    arguments themselves and raise ``Rejected``.
    """

    name = "numpy"

    def versions(self) -> dict[str, str]:
        """The version of NumPy."""
        return {"numpy": np.__version__}
