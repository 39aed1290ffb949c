"""The rules of the cross-entropy loss (trainable-decoder, gradients-and-accounting)."""

from __future__ import annotations

import numpy as np

from conformance.errors import Rejected
from conformance.truth.arithmetic.functions import log
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference.attention import AttentionRules


class LossRules(AttentionRules):
    """The mean of log-sum-exp minus the logit of the target, over the targets that are scored."""

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        """Rank 0, for logits [..., V] and targets [...]; ``ignore_index`` marks what is left out.

        trainable-decoder, "Freeze the Public Interface Before Organizing the Internals". Raises
        Rejected as ``check_targets`` does.
        """
        self.check_targets(logits, targets, ignore_index)
        if logits.ndim == 1:  # one position alone is one of one
            logits, targets = logits.reshape((1, *logits.shape)), targets.reshape(1)
        scored = self.scored(targets, ignore_index)
        losses = self.losses(take(logits, np.nonzero(scored)), targets[scored])
        return self.mean_loss(losses, targets)

    def check_targets(self, logits: Node, targets: np.ndarray | Node, ignore_index: int) -> None:
        """Shape, dtype, whether any is scored, then the range of those that are."""
        if targets.shape != logits.shape[:-1]:
            raise Rejected("target-shape", f"targets {targets.shape} for logits {logits.shape}")
        if isinstance(targets, Node) or targets.dtype != np.int64:
            raise Rejected("target-dtype", "the targets are not int64")
        scored = targets[targets != ignore_index]
        if scored.size == 0:
            raise Rejected("no-scored-target", "no target is scored")
        if not 0 <= int(scored.min()) <= int(scored.max()) < logits.shape[-1]:
            raise Rejected("target-range", f"a target outside 0..{logits.shape[-1] - 1}")

    def scored(self, targets: np.ndarray, ignore_index: int) -> np.ndarray:
        return np.asarray(targets != ignore_index)

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        """log sum exp(z) - z[target] for each row z of logits [n, V]; the gradient is p - y."""
        value = self.negative_log_likelihood(logits, targets)
        return value.with_rule((logits,), lambda g: (self.loss_gradient(logits, targets, g),))

    def negative_log_likelihood(self, logits: Node, targets: np.ndarray) -> Node:
        """Of the target's probability; the largest logit is subtracted from all first."""
        everywhere = np.ones(logits.shape[-1])
        total = log(self.exponentials(logits, everywhere).sum(-1))
        centred = logits - self.peak(logits, everywhere)
        return total - take(centred, (np.arange(len(targets)), targets))

    def loss_gradient(self, logits: Node, targets: np.ndarray, g: Node) -> Node:
        """g (p - y), with y one at the target and zero elsewhere.

        gradients-and-accounting, "The Scope of Memory and Compute Estimates".
        """
        p = self.softmax(logits)
        y = np.zeros(logits.shape)
        y[np.arange(len(targets)), targets] = 1.0
        return g.reshape((*g.shape, 1)) * (p - p.tape.floats(y))

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        """Divided by the number of scored targets, which is the number of ``losses``."""
        del targets
        return losses.sum(0) / losses.shape[0]
