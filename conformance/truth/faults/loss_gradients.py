"""Mistakes in the gradient of the cross-entropy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault


class LossGradientNegated(Fault):
    """The gradient of the loss had the opposite sign: y - p."""

    breaks = "CE-GRADIENT"
    also = ("LOSS-GRADIENT",)
    sources = ("C-64",)
    mend = "The gradient is the probabilities minus one at the target."

    def loss_gradient(self, logits: Node, targets: np.ndarray, g: Node) -> Node:
        return -super().loss_gradient(logits, targets, g)


class OneHotForgotten(Fault):
    """The gradient of the loss was the probabilities, with nothing subtracted at the target."""

    breaks = "CE-GRADIENT"
    also = ("LOSS-GRADIENT",)
    sources = ("C-64",)
    mend = "Subtract one from the probability of the target."

    def loss_gradient(self, logits: Node, targets: np.ndarray, g: Node) -> Node:
        return g.reshape((*g.shape, 1)) * self.softmax(logits)


class LossGradientAtTarget(Fault):
    """The gradient of the loss came at the logit of the target alone."""

    breaks = "CE-GRADIENT"
    also = ("LOSS-GRADIENT",)
    mend = "Every logit of the row has a gradient: its probability."

    def loss_gradient(self, logits: Node, targets: np.ndarray, g: Node) -> Node:
        hot = np.zeros(logits.shape)
        hot[np.arange(len(targets)), targets] = 1.0
        return super().loss_gradient(logits, targets, g) * g.tape.floats(hot)


class LossGradientUndivided(Fault):
    """The gradient of the loss was not divided by the number of scored targets."""

    breaks = "CE-GRADIENT"
    also = ("LOSS-GRADIENT",)
    sources = ("C-64",)
    mend = "Divide p - y by the number of scored targets, as the loss is."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        return _sharing(super().mean_loss(losses, targets), losses, lambda g: g)


class LossGradientOverAllPositions(Fault):
    """The gradient of the loss was divided by the number of all positions."""

    breaks = "CE-GRADIENT"
    also = ("LOSS-GRADIENT",)
    mend = "Divide p - y by the number of scored targets, as the loss is."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        return _sharing(super().mean_loss(losses, targets), losses, lambda g: g / targets.size)


class LossGradientOverVocabulary(Fault):
    """The gradient of the loss was divided by the size of the vocabulary once more."""

    breaks = "CE-GRADIENT"
    also = ("LOSS-GRADIENT",)
    mend = "Divide p - y by the number of scored targets, and by nothing else."

    def loss_gradient(self, logits: Node, targets: np.ndarray, g: Node) -> Node:
        return super().loss_gradient(logits, targets, g) / logits.shape[-1]


class LossUpstreamIgnored(Fault):
    """The gradient of the loss left out the gradient that came from above."""

    breaks = "CE-GRADIENT"
    mend = "Multiply by the upstream gradient; the loss may be one term of several."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        count, one = losses.shape[0], losses.tape.floats(np.array(1))
        return _sharing(super().mean_loss(losses, targets), losses, lambda _: one / count)


class IgnoredRowsWithGradient(Fault):
    """Positions that are left out received the gradient of their probabilities."""

    breaks = "CE-GRADIENT"
    also = ("CE-IGNORE",)
    mend = "Give zeros at the positions whose target is ignore_index."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        loss = super().cross_entropy(logits, targets, ignore_index=ignore_index)
        scored = self.scored(targets, ignore_index)
        left_out = loss.tape.floats((~scored).astype(np.float64)[..., None])

        def rule(g: Node) -> tuple[Node, Node]:
            p = self.softmax(logits) * left_out
            return g, p * g / int(scored.sum())

        return loss.with_rule((loss, logits), rule)


class LossDetached(Fault):
    """The loss came as a number outside the graph, and no gradient came from it."""

    breaks = "CE-GRADIENT"
    also = ("GRAD-PRESENT", "LOSS-GRADIENT")
    sources = ("C-46",)
    mend = "Return the loss itself; item() is for printing."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        return super().mean_loss(losses, targets).detach()


def _sharing(loss: Node, losses: Node, share: Callable[[Node], Node]) -> Node:
    """``loss``, of whose gradient each of the ``losses`` receives ``share``."""
    return loss.with_rule((losses,), lambda g: (share(g).broadcast_to(losses.shape),))
