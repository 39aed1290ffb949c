"""Implementations whose only mistake is how they round, written in plain NumPy."""

from __future__ import annotations

import numpy as np

from conformance.backends.numpy import NumpyBackend


class TakesOnePass(NumpyBackend):
    fault = "one-pass-variance"

    def layer_norm(self, x, gamma, beta, *, eps):
        mean = x.mean(axis=-1, keepdims=True)
        variance = np.square(x).mean(axis=-1, keepdims=True) - np.square(mean)
        with np.errstate(invalid="ignore"):
            root = np.sqrt(variance + np.array(eps, x.dtype))
        return (x - mean) / root * gamma + beta


class TakesOnePassAndClips(NumpyBackend):
    """Another way to lose the same cases: nothing here is NaN, and the values are others."""

    fault = "one-pass-variance"

    def layer_norm(self, x, gamma, beta, *, eps):
        total, squares = x.sum(axis=-1, keepdims=True), (x * x).sum(axis=-1, keepdims=True)
        count = np.array(x.shape[-1], x.dtype)
        variance = np.maximum(squares - total * total / count, 0) / count
        scale = 1 / np.sqrt(variance + np.array(eps, x.dtype))
        return x * scale * gamma + (beta - total / count * scale * gamma)


class TakesStatisticsInFloat32(NumpyBackend):
    fault = "float32-statistics"
    narrow = np.float32

    def layer_norm(self, x, gamma, beta, *, eps):
        with np.errstate(all="ignore"):
            seen = x.astype(self.narrow)
            mean = seen.mean(axis=-1, keepdims=True)
            centred = x - mean.astype(x.dtype)
            squares = np.square(centred.astype(self.narrow))
            variance = squares.mean(axis=-1, keepdims=True)
            root = np.sqrt(variance.astype(x.dtype) + np.array(eps, x.dtype))
            return centred / root * gamma + beta


class TakesStatisticsInFloat16(TakesStatisticsInFloat32):
    fault = "float16-statistics"
    narrow = np.float16


class Products(NumpyBackend):
    """Matrix products of operands that the subclass cuts first, forward and backward."""

    def linear(self, x, weight, bias=None):
        super().linear(x, weight, bias)
        y = self.cut(x) @ self.cut(weight)
        return y if bias is None else y + bias

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        g = self.cut(upstream)
        gradients["x"] = g @ self.cut(weight).T
        rows = self.cut(x).reshape(-1, x.shape[-1])
        gradients["weight"] = rows.T @ g.reshape(-1, g.shape[-1])
        return gradients


def kept(x, bits):
    """float32 numbers whose last bits are cut off by a mask, and rounded half up."""
    whole = np.ascontiguousarray(x, np.float32).view(np.uint32)
    drop = np.uint32(24 - bits)
    mask = np.uint32((0xFFFFFFFF << int(drop)) & 0xFFFFFFFF)
    rounded = (whole + np.uint32(1 << (int(drop) - 1))) & mask
    return rounded.view(np.float32).reshape(x.shape).astype(x.dtype)


class MultipliesInTf32(Products):
    fault = "tf32-products"

    def cut(self, x):
        return kept(x, 11)


class MultipliesInBfloat16(Products):
    fault = "bfloat16-products"

    def cut(self, x):
        return kept(x, 8)


class MultipliesInHalfPrecision(NumpyBackend):
    """As under an autocast: what goes into a product and what comes out of it is float16."""

    fault = "float16-products"

    def linear(self, x, weight, bias=None):
        super().linear(x, weight, bias)
        y = self.half(np.matmul, x, weight).astype(x.dtype)
        return y if bias is None else y + bias

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        gradients["x"] = self.half(np.matmul, upstream, weight.T).astype(x.dtype)
        rows = x.reshape(-1, x.shape[-1]), upstream.reshape(-1, upstream.shape[-1])
        gradients["weight"] = self.half(np.matmul, rows[0].T, rows[1]).astype(x.dtype)
        return gradients

    def half(self, product, left, right):
        """Sums are kept in float32, as the hardware does it."""
        with np.errstate(over="ignore", invalid="ignore"):
            left, right = left.astype(np.float16), right.astype(np.float16)
            return product(left.astype(np.float32), right.astype(np.float32)).astype(np.float16)


class MultipliesInFloat32(Products):
    fault = "float32-products"

    def linear(self, x, weight, bias=None):
        NumpyBackend.linear(self, x, weight, bias)
        y = (x.astype(np.float32) @ weight.astype(np.float32)).astype(x.dtype)
        return y if bias is None else y + bias

    def cut(self, x):
        return x.astype(np.float32)

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        return {name: value.astype(x.dtype) for name, value in gradients.items()}


class KeepsANarrowStream(NumpyBackend):
    fault = "narrow-trunk"

    def residual_add(self, x, increment):
        return super().residual_add(kept(x, 8) if x.ndim else x, increment)
