"""NumPy: linear, layer norm, GELU, the residual addition, the feed-forward and its sublayer."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._numpy_once import Remembering
from ._rejections import check_linear, check_same_shape

Array: TypeAlias = npt.NDArray[np.floating[Any]]
Gradients: TypeAlias = dict[str, Array]


class NumpyLayers(Remembering):
    """What each position has to itself, with ``math.erfc`` for the normal distribution."""

    def linear(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """``x [..., d_in]``, ``weight [d_in, d_out]``, ``bias [d_out]`` -> ``y [..., d_out]``.

        y = x W + b. Raises ``Rejected`` for each kind that ``linear`` rejects.
        """
        check_linear(x, weight, bias)
        y = x @ weight
        return y if bias is None else y + bias

    def linear_vjp(
        self, upstream: Array, x: Array, weight: Array, bias: Array | None = None
    ) -> Gradients:
        """``upstream [..., d_out]`` -> gradients of ``x``, ``weight`` and, if given, ``bias``.

        With G upstream: dx = G W^T, dW = the sum over positions of x^T G, db = the sum of G.
        Without positions the sums are zeros of full shape. Raises ``Rejected`` as ``linear``.
        """
        check_linear(x, weight, bias)
        d_in, d_out = weight.shape
        gradients: Gradients = {
            "x": upstream @ weight.T,
            "weight": x.reshape(-1, d_in).T @ upstream.reshape(-1, d_out),
        }
        if bias is not None:
            gradients["bias"] = sum_of_positions(upstream)
        return gradients

    def layer_norm(self, x: Array, gamma: Array, beta: Array, *, eps: float) -> Array:
        """``x [..., d]``, ``gamma [d]``, ``beta [d]`` -> ``y [..., d]``.

        y = gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis, with the
        population variance (divided by d).
        """
        normalised, _ = self._once(_normalise, x, eps=eps)
        return gamma * normalised + beta

    def layer_norm_vjp(
        self, upstream: Array, x: Array, gamma: Array, beta: Array, *, eps: float
    ) -> Gradients:
        """``upstream [..., d]`` -> gradients of ``x``, ``gamma`` and ``beta``.

        With n = (x - mean) / s, s = sqrt(variance + eps) and g = gamma G:
        dx = (g - mean(g) - n mean(g n)) / s, where the last two terms come through the mean and
        the variance; dgamma = the sum of G n, dbeta = the sum of G.
        """
        del beta  # a summand; no gradient depends on it
        normalised, deviation = self._once(_normalise, x, eps=eps)
        g = upstream * gamma
        slope = _mean(g * normalised)
        return {
            "x": (g - _mean(g) - normalised * slope) / deviation,
            "gamma": sum_of_positions(upstream * normalised),
            "beta": sum_of_positions(upstream),
        }

    def gelu(self, x: Array) -> Array:
        """``x [...]`` -> ``y [...]``: y = x Phi(x), Phi the normal distribution function."""
        return x * self._once(_phi, x)

    def gelu_vjp(self, upstream: Array, x: Array) -> Gradients:
        """``upstream [...]`` -> the gradient of ``x``: G (Phi(x) + x phi(x)), phi the density."""
        density = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
        return {"x": upstream * (self._once(_phi, x) + x * density)}

    def residual_add(self, x: Array, increment: Array) -> Array:
        """``x [...]``, ``increment`` of the same shape -> ``y [...]``: y = x + increment.

        Raises ``Rejected("shape-mismatch")``.
        """
        check_same_shape(x, increment)
        return x + increment

    def residual_add_vjp(self, upstream: Array, x: Array, increment: Array) -> Gradients:
        """``upstream [...]`` -> the gradients of ``x`` and ``increment``, each equal to upstream.

        Raises ``Rejected("shape-mismatch")``.
        """
        check_same_shape(x, increment)
        # Copies, so that adding into one gradient in place leaves the other one alone.
        return {"x": upstream.copy(), "increment": upstream.copy()}

    def feed_forward(self, x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array) -> Array:
        """``x [..., d]``, ``w_1 [d, f]``, ``b_1 [f]``, ``w_2 [f, d]``, ``b_2 [d]`` -> ``[..., d]``.

        y = gelu(x w_1 + b_1) w_2 + b_2. Raises ``Rejected`` as ``linear``.
        """
        hidden = self._once(self.linear, x, w_1, b_1)
        return self.linear(self._once(self.gelu, hidden), w_2, b_2)

    def feed_forward_vjp(
        self, upstream: Array, x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array
    ) -> Gradients:
        """``upstream [..., d]`` -> the gradients of all five arguments; raises as the operation."""
        hidden = self._once(self.linear, x, w_1, b_1)
        second = self.linear_vjp(upstream, self._once(self.gelu, hidden), w_2, b_2)
        activation = self.gelu_vjp(second["x"], hidden)
        first = self.linear_vjp(activation["x"], x, w_1, b_1)
        return {
            "x": first["x"],
            "w_1": first["weight"],
            "b_1": first["bias"],
            "w_2": second["weight"],
            "b_2": second["bias"],
        }

    def feed_forward_sublayer(
        self,
        x: Array,
        gamma: Array,
        beta: Array,
        w_1: Array,
        b_1: Array,
        w_2: Array,
        b_2: Array,
        *,
        eps: float,
    ) -> Array:
        """``x [..., d]`` and the parameters of ``layer_norm`` and ``feed_forward`` -> ``[..., d]``.

        y = x + feed_forward(layer_norm(x)). Raises ``Rejected`` as ``linear``, ``residual_add``.
        """
        normalised = self._once(self.layer_norm, x, gamma, beta, eps=eps)
        return self.residual_add(x, self.feed_forward(normalised, w_1, b_1, w_2, b_2))

    def feed_forward_sublayer_vjp(
        self,
        upstream: Array,
        x: Array,
        gamma: Array,
        beta: Array,
        w_1: Array,
        b_1: Array,
        w_2: Array,
        b_2: Array,
        *,
        eps: float,
    ) -> Gradients:
        """``upstream [..., d]`` -> the gradients of all seven arguments; raises as the operation.

        x gets one gradient along the trunk and one through the branch.
        """
        normalised = self._once(self.layer_norm, x, gamma, beta, eps=eps)
        trunk = self.residual_add_vjp(upstream, x, normalised)  # the branch has this shape too
        branch = self.feed_forward_vjp(trunk["increment"], normalised, w_1, b_1, w_2, b_2)
        norm = self.layer_norm_vjp(branch.pop("x"), x, gamma, beta, eps=eps)
        return {**branch, **norm, "x": trunk["x"] + norm["x"]}


def _normalise(x: Array, eps: float) -> tuple[Array, Array]:
    """``x [..., d]`` -> ``(x - mean) / s [..., d]`` and ``s [..., 1]``, s = sqrt(variance + eps).

    The variance is taken of the centred values: mean(x^2) - mean(x)^2 is the same in exact
    arithmetic, but where the mean is large beside the spread, all its digits cancel.
    """
    centred = x - _mean(x)
    deviation = np.sqrt(_mean(centred * centred) + eps)
    return centred / deviation, deviation


def _mean(x: Array) -> Array:
    """``[..., d] -> [..., 1]``; ``x.mean`` is the same sum, and takes several times as long."""
    mean: Array = np.add.reduce(x, axis=-1, keepdims=True) / x.shape[-1]
    return mean


def _phi(x: Array) -> Array:
    """Phi(x) = erfc(-x / sqrt(2)) / 2, evaluated in double precision, in the dtype of ``x``.

    (1 + erf(x / sqrt(2))) / 2 is the same number, but for negative x it loses digit after digit
    to cancellation, until below -8.3 it is zero. erfc keeps them and is no worse elsewhere.
    """
    scaled = x.astype(np.float64).reshape(-1) / -math.sqrt(2.0)
    tail = np.fromiter(map(math.erfc, scaled.tolist()), np.float64, count=scaled.size)
    phi: Array = (0.5 * tail).reshape(x.shape).astype(x.dtype)
    return phi


def sum_of_positions(array: Array) -> Array:
    """``[..., d] -> [d]``: the sum over every axis but the last; zeros where there is none."""
    total: Array = np.add.reduce(array, axis=tuple(range(array.ndim - 1)))
    return total
