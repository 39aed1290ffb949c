"""Adapters named by their vice, each a few lines: what the kit must see, and say, of each.

The vice is in ``gelu`` or its gradient unless the name says otherwise; all else is right.
"""

from __future__ import annotations

import string
from functools import partial

import numpy as np

from conformance import Rejected
from conformance.backends.numpy import NumpyBackend


class Raises(NumpyBackend):
    def gelu(self, x):
        raise ValueError("out of luck")


class RaisesWhatCantBeShown(NumpyBackend):
    class Unspeakable(Exception):
        def __str__(self):
            raise RuntimeError("not even this")

    def gelu(self, x):
        raise self.Unspeakable


class Exits(NumpyBackend):
    def gelu(self, x):
        raise SystemExit(3)


class RunsOutOfMemory(NumpyBackend):
    def gelu(self, x):
        raise MemoryError("no more")


class Misspells(NumpyBackend):
    def gelu(self, x):
        return nmupy.tanh(x)  # noqa: F821 -- the vice


class MisspellsTheLibrary(NumpyBackend):
    def gelu(self, x):
        return np.geloo(x)


class ImportsWhatIsNotThere(NumpyBackend):
    def gelu(self, x):
        import no_such_library

        return no_such_library.gelu(x)


class LetsTheLibraryMisspell(NumpyBackend):
    """An AttributeError below the adapter's own lines is the library's way of refusing."""

    def gelu(self, x):
        return string.capwords(x)


class ReturnsNone(NumpyBackend):
    def gelu(self, x):
        super().gelu(x)


class ReturnsAList(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).tolist()


class ReturnsAPair(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x), x


class ReturnsAnotherShape(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x)[np.newaxis]


class ReturnsAnotherDtype(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype(np.float16)


class ReturnsObjects(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype(object)


class ReturnsText(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype(str)


class ReturnsComplexNumbers(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype(complex)


class ReturnsRecords(NumpyBackend):
    def gelu(self, x):
        return np.zeros(x.shape, dtype=[("y", x.dtype)])


class ReturnsNan(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x) * np.array(np.nan, x.dtype)


class ReturnsInfinity(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x) / np.zeros((), x.dtype)


class WritesIntoItsInput(NumpyBackend):
    def gelu(self, x):
        y = super().gelu(x)
        x[...] = y
        return y


class WritesIntoUpstream(NumpyBackend):
    def gelu_vjp(self, upstream, x):
        gradients = super().gelu_vjp(upstream, x)
        upstream *= 2
        return gradients


class KeepsState(NumpyBackend):
    """Every second answer is off by the last bit, which no bound would mind."""

    def __init__(self):
        self.turn = 0

    def gelu(self, x):
        self.turn += 1
        y = super().gelu(x)
        return np.nextafter(y, np.zeros((), y.dtype)) if self.turn % 2 else y


class RejectsEverything(NumpyBackend):
    def linear(self, x, weight, bias=None):
        raise Rejected("weight-rank", "never")


class RejectsAsSomethingElse(NumpyBackend):
    def linear(self, x, weight, bias=None):
        if np.ndim(weight) != 2:
            raise Rejected("input-rank", "a guess")
        return super().linear(x, weight, bias)


class RejectsWithoutText(NumpyBackend):
    """Kind and message are no text, or none that can be encoded."""

    def gelu(self, x):
        raise Rejected(object(), "\ud800")


class AcceptsEverything(NumpyBackend):
    def linear(self, x, weight, bias=None):
        try:
            return super().linear(x, weight, bias)
        except Rejected:
            return np.zeros(np.shape(x), x.dtype)

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=eps or 1e-12)


class AcceptsWithObjects(NumpyBackend):
    """Where there is no value, an array comes back that is not even made of numbers."""

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=eps) if eps else np.full(x.shape, None)


class TakesOtherArguments(NumpyBackend):
    def gelu(self, value):
        return super().gelu(value)


class WantsMoreArguments(NumpyBackend):
    def gelu(self, x, approximate):
        return super().gelu(x)


class HasAnAttributeForAMethod(NumpyBackend):
    gelu = 5


class ReturnsStrangeGradients(NumpyBackend):
    def gelu_vjp(self, upstream, x):
        return {**super().gelu_vjp(upstream, x), "z": x}


class ReturnsNoGradient(NumpyBackend):
    def gelu_vjp(self, upstream, x):
        return {}


class ReturnsNoneAsGradient(NumpyBackend):
    def gelu_vjp(self, upstream, x):
        return {"x": None}


class ReturnsABareGradient(NumpyBackend):
    def gelu_vjp(self, upstream, x):
        return super().gelu_vjp(upstream, x)["x"]


class TakesNoUpstream(NumpyBackend):
    def gelu_vjp(self, x):
        return {"x": x}


class HasNoGradient(NumpyBackend):
    gelu_vjp = None


class HasOneDtype(NumpyBackend):
    dtypes = ("float32",)


def backward(upstream, x):
    return NumpyBackend().gelu_vjp(upstream, x)


class BorrowsItsGradient(NumpyBackend):
    """Not a vice: a function of another name, taken as the gradient."""

    gelu_vjp = staticmethod(backward)


class BindsItsGradient(NumpyBackend):
    """Not a vice: what is called need not be a function."""

    def __init__(self):
        self.gelu_vjp = partial(backward)
