"""The rules of layer normalisation (decoder-block)."""

from __future__ import annotations

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.nodes import Node


class NormalisationRules:
    """Layer normalisation by its steps: centre, variance, root, standardise, affine."""

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        """gamma (x - mean) / sqrt(variance + eps) + beta over the last axis of x [..., d].

        decoder-block, "Position-Wise LayerNorm: Mean, Population Variance, and Stability
        Constant".
        """
        return self.affine(self.standardise(self.centre(x), eps), gamma, beta)

    def centre(self, x: Node) -> Node:
        return x - self.mean(x)

    def mean(self, x: Node) -> Node:
        return x.sum(-1, keepdims=True) / x.shape[-1]

    def variance(self, centred: Node) -> Node:
        """The population variance: divided by d, never by d - 1."""
        return (centred * centred).sum(-1, keepdims=True) / centred.shape[-1]

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + eps)

    def standardise(self, centred: Node, eps: Node) -> Node:
        return centred / self.root(self.variance(centred), eps)

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return gamma * z + beta
