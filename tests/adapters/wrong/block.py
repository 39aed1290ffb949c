"""Blocks with one mistake each, written out in one function as many are."""

from __future__ import annotations

from tests.adapters.decoder_torch import DecoderTorch, layers, maps, norm


class Block(DecoderTorch):
    """``n1``, ``attention``, ``n2`` and ``mlp`` are functions of a trunk; see ``forward``."""

    def block(self, x, parameters, *, heads, eps):
        first = norm(parameters, "attention_norm")
        second = norm(parameters, "feed_forward_norm")
        return self.forward(
            x,
            lambda trunk: self.layer_norm(trunk, *first, eps=eps),
            lambda trunk: self.causal_attention(trunk, *maps(parameters), heads=heads),
            lambda trunk: self.layer_norm(trunk, *second, eps=eps),
            lambda trunk: self.feed_forward(trunk, *layers(parameters)),
        )


class RunsBothBranchesInParallel(Block):
    fault = "second-branch-reads-input"

    def forward(self, x, n1, attention, n2, mlp):
        return x + attention(n1(x)) + mlp(n2(x))


class LosesTheFirstSum(Block):
    fault = "second-branch-adds-to-input"

    def forward(self, x, n1, attention, n2, mlp):
        u = x + attention(n1(x))
        return x + mlp(n2(u))


class SkipsAttention(Block):
    fault = "first-branch-forgotten"

    def forward(self, x, n1, attention, n2, mlp):
        return x + mlp(n2(x))


class SkipsTheFeedForward(Block):
    fault = "second-branch-forgotten"

    def forward(self, x, n1, attention, n2, mlp):
        return x + attention(n1(x))


class FeedsForwardFirst(Block):
    fault = "branches-exchanged"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + mlp(n2(x))
        return x + attention(n1(x))


class ReplacesTheTrunkByAttention(Block):
    fault = "first-trunk-forgotten"

    def forward(self, x, n1, attention, n2, mlp):
        x = attention(n1(x))
        return x + mlp(n2(x))


class ReplacesTheTrunkByTheFeedForward(Block):
    fault = "second-trunk-forgotten"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return mlp(n2(x))


class PoolsThePositions(Block):
    fault = "feed-forward-averages-positions"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return x + mlp(n2(x).mean(dim=1, keepdim=True))


class FlattensTheBatch(Block):
    fault = "block-flattened"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return (x + mlp(n2(x))).flatten(0, 1)


# --------------------------------------------------------------------------------------- the norms


class NormalisesEachSum(Block):
    fault = "norms-after-sums"

    def forward(self, x, n1, attention, n2, mlp):
        x = n1(x + attention(x))
        return n2(x + mlp(x))


class NormalisesInPlace(Block):
    fault = "block-trunk-normalised"

    def forward(self, x, n1, attention, n2, mlp):
        x = n1(x)
        x = x + attention(x)
        x = n2(x)
        return x + mlp(x)


class NormalisesAtTheEnd(Block):
    fault = "block-output-normalised"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return n2(x + mlp(n2(x)))


class NormalisesOneBranchAlone(Block):
    fault = "second-norm-forgotten"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return x + mlp(x)


class SharesOneNorm(Block):
    fault = "first-norm-twice"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return x + mlp(n1(x))


class SwapsTheNorms(Block):
    fault = "norms-exchanged"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n2(x))
        return x + mlp(n1(x))


class NormalisesOnce(Block):
    fault = "first-norm-reused"

    def forward(self, x, n1, attention, n2, mlp):
        normalised = n1(x)
        return x + attention(normalised) + mlp(normalised)


# ----------------------------------------------------------------------------------- the gradients


class CutsBothBranches(Block):
    fault = "branches-detached"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x)).detach()
        return x + mlp(n2(x)).detach()


class CutsBetweenTheBranches(Block):
    fault = "trunk-detached-between-branches"

    def forward(self, x, n1, attention, n2, mlp):
        x = (x + attention(n1(x))).detach()
        return x + mlp(n2(x))


class CutsBeforeTheSecondNorm(Block):
    fault = "second-branch-reads-detached"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return x + mlp(n2(x.detach()))


class CutsTheSecondTrunk(Block):
    fault = "second-trunk-detached"

    def forward(self, x, n1, attention, n2, mlp):
        x = x + attention(n1(x))
        return x.detach() + mlp(n2(x))


class CutsBothTrunks(Block):
    fault = "trunk-jacobian-forgotten"

    def forward(self, x, n1, attention, n2, mlp):
        x = x.detach() + attention(n1(x))
        return x.detach() + mlp(n2(x))
