"""The decoder and its loss in plain PyTorch, on top of the block: what wrong adapters change.

Tokens and targets are looked up, checked and scored in methods of their own; autograd
differentiates whatever a subclass replaces. It shares no line with the bundled backends.
"""

from __future__ import annotations

import torch

from conformance import Rejected
from tests.adapters.decoder_torch import DecoderTorch


class ModelTorch(DecoderTorch):
    """Token ids and targets are int64 tensors; real tensors are float64 or float32."""

    # ------------------------------------------------------------------------------- embedding

    def embed(self, tokens, token_embedding, position_embedding):
        tokens = self.accepted(tokens, token_embedding.shape[0], position_embedding.shape[0])
        rows = self.token_rows(token_embedding, tokens)
        return rows + self.position_rows(position_embedding, tokens)

    def accepted(self, tokens, vocabulary, context):
        """The tokens, if they are what they must be."""
        self.need_batch(tokens)
        self.need_ids(tokens)
        self.need_tokens(tokens)
        self.need_room(tokens, context)
        self.need_range(tokens, vocabulary)
        return tokens

    def need_batch(self, tokens):
        if tokens.ndim != 2:
            raise Rejected("token-rank", "the tokens are no batch of sequences")

    def need_ids(self, tokens):
        if tokens.dtype != torch.int64:
            raise Rejected("token-dtype", "the tokens are no int64")

    def need_tokens(self, tokens):
        if tokens.shape[-1] == 0:
            raise Rejected("no-tokens", "the sequences are empty")

    def need_room(self, tokens, context):
        if tokens.shape[-1] > context:
            raise Rejected("too-long", "more tokens than positions")

    def need_range(self, tokens, vocabulary):
        if tokens.numel() and (tokens.min() < 0 or tokens.max() >= vocabulary):
            raise Rejected("token-range", "an id outside the vocabulary")

    def token_rows(self, table, tokens):
        return table[tokens]

    def position_rows(self, table, tokens):
        return table[self.places(tokens, table.shape[0])]

    def places(self, tokens, context):
        """The position of every token, for one sequence or for each."""
        return torch.arange(tokens.shape[-1])

    # --------------------------------------------------------------------------------- decoder

    def decoder(self, tokens, parameters, *, heads, eps):
        x = self.embed(tokens, parameters["token_embedding"], parameters["position_embedding"])
        x = self.run(x, self.layers_of(parameters), heads, eps)
        return self.project(self.finish(x, parameters, eps), parameters)

    def layers_of(self, parameters):
        """The parameters of each block, in order."""
        count = 1 + max(
            (int(n.split(".")[1]) for n in parameters if n[:7] == "blocks."), default=-1
        )
        return [
            {
                name.removeprefix(f"blocks.{k}."): value
                for name, value in parameters.items()
                if name.startswith(f"blocks.{k}.")
            }
            for k in range(count)
        ]

    def run(self, x, layers, heads, eps):
        for own in layers:
            x = self.block(x, own, heads=heads, eps=eps)
        return x

    def finish(self, x, parameters, eps):
        gamma, beta = parameters["final_norm.gamma"], parameters["final_norm.beta"]
        return self.layer_norm(x, gamma, beta, eps=eps)

    def project(self, x, parameters):
        return self.linear(x, parameters["head"])

    # ------------------------------------------------------------------------------------ loss

    def decoder_loss(self, tokens, targets, parameters, *, heads, eps, ignore_index):
        logits = self.decoder(tokens, parameters, heads=heads, eps=eps)
        return self.cross_entropy(logits, targets, ignore_index=ignore_index)

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        scored = targets != ignore_index
        return self.mean(self.row_losses(logits[scored], targets[scored]), scored, logits)

    def need_targets(self, logits, targets, ignore_index):
        self.need_positions(logits, targets)
        self.need_target_ids(targets)
        self.need_scored(targets, ignore_index)
        self.need_target_range(targets[targets != ignore_index], logits.shape[-1])

    def need_positions(self, logits, targets):
        if targets.shape != logits.shape[:-1]:
            raise Rejected("target-shape", "targets and logits have other positions")

    def need_target_ids(self, targets):
        if targets.dtype != torch.int64:
            raise Rejected("target-dtype", "the targets are no int64")

    def need_scored(self, targets, ignore_index):
        if bool((targets == ignore_index).all()):
            raise Rejected("no-scored-target", "no target is scored")

    def need_target_range(self, scored, vocabulary):
        if bool(((scored < 0) | (scored >= vocabulary)).any()):
            raise Rejected("target-range", "a target outside the vocabulary")

    def row_losses(self, logits, targets):
        """One loss for each row of logits [n, V]."""
        centred = logits - logits.detach().amax(dim=-1, keepdim=True)
        own = centred.gather(-1, targets[:, None])[:, 0]
        return torch.log(torch.exp(centred).sum(dim=-1)) - own

    def mean(self, losses, scored, logits):
        """Of the losses of the scored positions; ``scored`` has the shape of the targets."""
        return losses.sum() / losses.numel()
