"""Embeddings with one mistake each, written in plain PyTorch as their authors would have."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.adapters.decoder_torch import by_hand
from tests.adapters.model_torch import ModelTorch

# ------------------------------------------------------------------------------------- the rows


class AddsNoTokens(ModelTorch):
    fault = "token-rows-forgotten"

    def embed(self, tokens, token_embedding, position_embedding):
        y = super().embed(tokens, token_embedding, position_embedding)
        return position_embedding[: tokens.shape[1]].expand(y.shape)


class CountsIdsFromOne(ModelTorch):
    fault = "token-ids-counted-from-one"

    def token_rows(self, table, tokens):
        return torch.roll(table, 1, dims=0)[tokens]


class ScalesTheTokens(ModelTorch):
    fault = "token-rows-scaled"

    def token_rows(self, table, tokens):
        return table[tokens] * table.shape[1] ** 0.5


class AddsNoPositions(ModelTorch):
    fault = "positions-forgotten"

    def embed(self, tokens, token_embedding, position_embedding):
        tokens = self.accepted(tokens, token_embedding.shape[0], position_embedding.shape[0])
        return functional.embedding(tokens, token_embedding)


class AddsTheFirstPosition(ModelTorch):
    fault = "positions-constant"

    def position_rows(self, table, tokens):
        return table[0]


class StartsAtPositionOne(ModelTorch):
    fault = "positions-from-one"

    def position_rows(self, table, tokens):
        return table[1:][torch.arange(tokens.shape[1])]


class CountsFromTheEnd(ModelTorch):
    fault = "positions-reversed"

    def position_rows(self, table, tokens):
        return table[: tokens.shape[1]].flip(0)


class TakesTheLastPositions(ModelTorch):
    fault = "positions-at-the-end"

    def position_rows(self, table, tokens):
        return table[-tokens.shape[1] :]


class NumbersTheSequences(ModelTorch):
    fault = "positions-of-sequences"

    def position_rows(self, table, tokens):
        return table[torch.arange(tokens.shape[0])].unsqueeze(1)


class NumbersTheWholeBatch(ModelTorch):
    fault = "positions-across-sequences"

    def places(self, tokens, context):
        return torch.arange(tokens.numel()).remainder(context).view(tokens.shape)


# -------------------------------------------------------------------------------- the gradients


class AssignsTheRows(ModelTorch):
    fault = "token-gradient-overwritten"

    def token_rows(self, table, tokens):
        def rule(g):
            gradient = torch.zeros_like(table)
            for row, own in zip(tokens.flatten().tolist(), g.flatten(0, -2), strict=True):
                gradient[row] = own
            return (gradient,)

        return by_hand(table[tokens], (table,), rule)


class ScalesByFrequency(ModelTorch):
    fault = "token-gradient-averaged"

    def token_rows(self, table, tokens):
        return functional.embedding(tokens, table, scale_grad_by_freq=True)


class PadsWithZero(ModelTorch):
    fault = "first-row-frozen"

    def token_rows(self, table, tokens):
        return functional.embedding(tokens, table, padding_idx=0)


class FreezesTheTokens(ModelTorch):
    fault = "token-table-detached"

    def token_rows(self, table, tokens):
        return table.detach()[tokens]


class FixesThePositions(ModelTorch):
    fault = "position-table-detached"

    def position_rows(self, table, tokens):
        return table.detach()[: tokens.shape[1]]


class LearnsFromTheFirstSequence(ModelTorch):
    fault = "position-gradient-of-first-sequence"

    def position_rows(self, table, tokens):
        rows = table[: tokens.shape[1]]
        others = rows.detach().expand(tokens.shape[0] - 1, *rows.shape)
        return torch.cat([rows.unsqueeze(0), others])


class AveragesThePositions(ModelTorch):
    fault = "position-gradient-averaged"

    def position_rows(self, table, tokens):
        rows = table[: tokens.shape[1]].expand(*tokens.shape, -1)
        return by_hand(rows, (table,), lambda g: (self.padded(g.mean(dim=0), table),))

    def padded(self, rows, table):
        return functional.pad(rows, (0, 0, 0, table.shape[0] - rows.shape[0]))


class CutsThePositions(ModelTorch):
    fault = "position-gradient-cut"

    def vjp(self, operation, upstream, arguments, wrt):
        found = super().vjp(operation, upstream, arguments, wrt)
        if "position_embedding" in found:
            length = arguments["tokens"].shape[1]
            found["position_embedding"] = found["position_embedding"][:length]
        return found


# ------------------------------------------------------------------- accepted and is not valid


class TakesTokensOfAnyRank(ModelTorch):
    fault = "token-rank-accepted"

    def need_batch(self, tokens):
        pass


class TakesInt32(ModelTorch):
    fault = "narrow-tokens-accepted"

    def accepted(self, tokens, vocabulary, context):
        if tokens.dtype == torch.int32:
            tokens = tokens.long()
        return super().accepted(tokens, vocabulary, context)


class TakesFloats(ModelTorch):
    fault = "real-tokens-accepted"

    def accepted(self, tokens, vocabulary, context):
        if tokens.is_floating_point():
            tokens = tokens.long()
        return super().accepted(tokens, vocabulary, context)


class TakesNothing(ModelTorch):
    fault = "empty-sequences-accepted"

    def need_tokens(self, tokens):
        pass


class StartsAgain(ModelTorch):
    fault = "positions-wrapped"

    def need_room(self, tokens, context):
        pass

    def places(self, tokens, context):
        return torch.arange(tokens.shape[-1]).remainder(context)


class StaysAtTheLastPosition(ModelTorch):
    fault = "positions-clamped"

    def need_room(self, tokens, context):
        pass

    def places(self, tokens, context):
        return torch.arange(tokens.shape[-1]).clamp(max=context - 1)


class KeepsTheBeginning(ModelTorch):
    fault = "first-tokens-kept"

    def accepted(self, tokens, vocabulary, context):
        return super().accepted(tokens[..., :context], vocabulary, context)


class KeepsTheEnd(ModelTorch):
    fault = "last-tokens-kept"

    def accepted(self, tokens, vocabulary, context):
        return super().accepted(tokens[..., -context:], vocabulary, context)


class IndexesFromTheEnd(ModelTorch):
    fault = "negative-ids-wrapped"

    def need_range(self, tokens, vocabulary):
        super().need_range(tokens.where(tokens >= 0, tokens + vocabulary), vocabulary)


class TakesTheRemainder(ModelTorch):
    fault = "ids-wrapped"

    def accepted(self, tokens, vocabulary, context):
        self.need_batch(tokens)
        self.need_ids(tokens)
        return super().accepted(tokens.remainder(vocabulary), vocabulary, context)


class ClampsTheIds(ModelTorch):
    fault = "ids-clamped"

    def accepted(self, tokens, vocabulary, context):
        self.need_ids(tokens)
        return super().accepted(tokens.clamp(0, vocabulary - 1), vocabulary, context)


class MultipliesByOneHots(ModelTorch):
    fault = "unknown-ids-zero"

    def need_range(self, tokens, vocabulary):
        pass

    def token_rows(self, table, tokens):
        hot = tokens.unsqueeze(-1) == torch.arange(table.shape[0])
        return torch.matmul(hot.to(table.dtype), table)


class FillsWithNan(ModelTorch):
    fault = "unknown-ids-nan"

    def need_range(self, tokens, vocabulary):
        pass

    def token_rows(self, table, tokens):
        known = (tokens >= 0) & (tokens < table.shape[0])
        rows = table[tokens.clamp(0, table.shape[0] - 1)]
        return rows.masked_fill(~known.unsqueeze(-1), float("nan"))
