"""Mistakes of rounding: over exact numbers there is nothing wrong with them.

They are evaluated in the precision of the question, where each of their steps is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import narrowed, through_float16


class OnePassVariance(Fault):
    """The variance was the mean of the squares less the square of the mean, which cancels."""

    breaks = "LN-SHIFT"
    also = ("LN-POPULATION-VARIANCE", "LN-CONSTANT")
    sources = ("C-10", "BUG-LN-04")
    mend = "Subtract the mean first, then square the deviations."
    native = True
    scattered = True

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean = self.mean(x)
        variance = self.mean(x * x) - mean * mean
        return self.affine((x - mean) / self.root(variance, eps), gamma, beta)


class Float32Statistics(Fault):
    """Mean and variance were computed in float32, whatever was asked for."""

    breaks = "LN-POPULATION-VARIANCE"
    also = ("LN-MEAN",)
    sources = ("BUG-LN-05",)
    mend = "Compute mean and variance in float64 where the arguments are float64."
    native = True
    scattered = True
    unseen: Mapping[str, str] = {"float32": "float32 is what is asked for there"}

    def mean(self, x: Node) -> Node:
        return narrowed(super().mean(narrowed(x, 24)), 24)

    def variance(self, centred: Node) -> Node:
        return narrowed(super().variance(narrowed(centred, 24)), 24)


class Float16Statistics(Fault):
    """Mean and variance were computed in float16, as in half precision without care."""

    breaks = "LN-POPULATION-VARIANCE"
    also = ("LN-MEAN",)
    sources = ("BUG-LN-05",)
    mend = "Compute mean and variance in the precision of the arguments or wider."
    native = True
    scattered = True

    def mean(self, x: Node) -> Node:
        return through_float16(super().mean(through_float16(x)))

    def variance(self, centred: Node) -> Node:
        return through_float16(super().variance(through_float16(centred)))


class Tf32Products(Fault):
    """The operands of matrix products were cut to eleven significant bits, as in TF32."""

    breaks = "LIN-AFFINE"
    also = ("LIN-GRAD-INPUT", "LIN-GRAD-WEIGHT")
    sources = ("BUG-LIN-08",)
    mend = "Ask the library for full products, such as matmul precision 'highest' or no TF32."
    native = True
    scattered = True

    def product(self, x: Node, weight: Node) -> Node:
        return super().product(narrowed(x, 11), narrowed(weight, 11))

    def input_gradient(self, g: Node, weight: Node) -> Node:
        return super().input_gradient(narrowed(g, 11), narrowed(weight, 11))

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(narrowed(x, 11), narrowed(g, 11))


class Bfloat16Products(Fault):
    """The operands of matrix products were cut to eight significant bits, as in bfloat16."""

    breaks = "LIN-AFFINE"
    also = ("LIN-GRAD-INPUT", "LIN-GRAD-WEIGHT")
    sources = ("BUG-LIN-08",)
    mend = "Multiply in the precision of the arguments; no automatic mixed precision."
    native = True
    scattered = True

    def product(self, x: Node, weight: Node) -> Node:
        return super().product(narrowed(x, 8), narrowed(weight, 8))

    def input_gradient(self, g: Node, weight: Node) -> Node:
        return super().input_gradient(narrowed(g, 8), narrowed(weight, 8))

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(narrowed(x, 8), narrowed(g, 8))


class Float16Products(Fault):
    """Matrix products were computed in float16 and widened."""

    breaks = "LIN-AFFINE"
    also = ("LIN-GRAD-INPUT", "LIN-GRAD-WEIGHT")
    mend = "Multiply in the precision of the arguments; no half precision, no autocast."
    native = True
    scattered = True

    def product(self, x: Node, weight: Node) -> Node:
        return through_float16(super().product(through_float16(x), through_float16(weight)))

    def input_gradient(self, g: Node, weight: Node) -> Node:
        found = super().input_gradient(through_float16(g), through_float16(weight))
        return through_float16(found)

    def weight_gradient(self, x: Node, g: Node) -> Node:
        found = super().weight_gradient(through_float16(x), through_float16(g))
        return through_float16(found)


class Float32Products(Fault):
    """Matrix products were computed in float32 and widened."""

    breaks = "LIN-AFFINE"
    also = ("LIN-GRAD-INPUT", "LIN-GRAD-WEIGHT")
    mend = "Multiply in float64 where the arguments are float64; JAX needs jax_enable_x64."
    native = True
    scattered = True
    unseen: Mapping[str, str] = {"float32": "float32 is what is asked for there"}

    def product(self, x: Node, weight: Node) -> Node:
        return narrowed(super().product(narrowed(x, 24), narrowed(weight, 24)), 24)

    def input_gradient(self, g: Node, weight: Node) -> Node:
        return narrowed(super().input_gradient(narrowed(g, 24), narrowed(weight, 24)), 24)

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return narrowed(super().weight_gradient(narrowed(x, 24), narrowed(g, 24)), 24)


class NarrowTrunk(Fault):
    """The trunk was kept in bfloat16, with eight significant bits."""

    breaks = "RES-ADD"
    also = ("SUBLAYER-TRUNK",)
    mend = "Keep the residual stream in the precision of the computation."
    native = True
    scattered = True

    def residual_add(self, x: Node, increment: Node) -> Node:
        return super().residual_add(narrowed(x, 8), increment)
