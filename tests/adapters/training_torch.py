"""Counting, construction, AdamW and training in plain PyTorch: what wrong adapters change.

Written from the signatures alone, on top of the decoder, without ``torch.optim``, ``torch.nn`` and
any line of the bundled backends; autograd differentiates whatever a subclass replaces. Each step
that can go wrong is a method of its own.
"""

from __future__ import annotations

import numpy as np
import torch

from conformance import Rejected
from tests.adapters.model_torch import ModelTorch

DOUBLE = torch.float64


class TrainingTorch(ModelTorch):
    """``sizes`` are vocab_size, block_size, d_model, n_heads, n_layers, d_ff, in this order."""

    # ---------------------------------------------------------------------------------- AdamW

    def adamw_step(
        self,
        parameter,
        gradient,
        first_moment,
        second_moment,
        *,
        step,
        learning_rate,
        beta_1,
        beta_2,
        eps,
        weight_decay,
    ):
        m, v = self.averaged(first_moment, second_moment, gradient, beta_1, beta_2)
        change = learning_rate * self.quotient(m, v, self.count_of(step), beta_1, beta_2, eps)
        after = self.applied(parameter, change, learning_rate, weight_decay)
        return {"parameter": after, "first_moment": m, "second_moment": v}

    def averaged(self, m, v, g, beta_1, beta_2):
        return m * beta_1 + g * (1 - beta_1), v * beta_2 + g.square() * (1 - beta_2)

    def count_of(self, step):
        return step

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (1 - beta_1**t) / (torch.sqrt(v / (1 - beta_2**t)) + eps)

    def applied(self, parameter, change, rate, decay):
        return self.shrunk(parameter, rate, decay) - change

    def shrunk(self, parameter, rate, decay):
        return parameter * (1 - rate * decay)

    # ------------------------------------------------------------------------------- clipping

    def clip_gradients(self, gradients, *, max_norm):
        total = self.norm_of(gradients.values())
        return {"gradients": self.scaled(gradients, total, max_norm), "norm": total}

    def norm_of(self, tensors):
        return torch.sqrt(sum(tensor.square().sum() for tensor in tensors))

    def scaled(self, gradients, total, max_norm):
        ratio = self.ratio(total, max_norm)
        return {name: self.times(g, ratio) for name, g in gradients.items()}

    def ratio(self, total, max_norm):
        return max_norm / (total + 1e-6)

    def times(self, g, ratio):
        return g * ratio if ratio < 1 else g.clone()

    # -------------------------------------------------------------------------- configuration

    def build(self, *, vocab_size, block_size, d_model, n_heads, n_layers, d_ff, dropout):
        sizes = (vocab_size, block_size, d_model, n_heads, n_layers, d_ff)
        self.need_sizes(sizes)
        self.need_words(vocab_size)
        self.need_heads(d_model, n_heads)
        self.need_dropout(dropout)
        shapes = self.model_shapes(*sizes)
        return {"shapes": {n: list(s) for n, s in shapes.items()}, "count": self.scalars(shapes)}

    def need_sizes(self, sizes):
        if min(sizes) < 1:
            raise Rejected("not-positive", "a size is no positive number")

    def need_words(self, words):
        if words < 3:
            raise Rejected("vocabulary", "no room for the reserved words")

    def need_heads(self, width, heads):
        if width % heads:
            raise Rejected("heads", "the width can't be split")

    def need_dropout(self, dropout):
        if not 0 <= dropout <= 1:
            raise Rejected("dropout", "no probability")

    def scalars(self, shapes):
        return sum(int(np.prod(shape)) for shape in shapes.values())

    def model_shapes(self, words, context, width, heads, layers, inner):
        """What is registered, by name."""
        found = {"token_embedding": (words, width), "position_embedding": (context, width)}
        for k in range(layers):
            own = self.layer_shapes(width, heads, inner)
            found.update({f"blocks.{k}.{name}": shape for name, shape in own.items()})
        found["final_norm.gamma"] = found["final_norm.beta"] = (width,)
        found["head"] = (width, words)
        return found

    def layer_shapes(self, width, heads, inner):
        square, vector = (width, width), (width,)
        return {
            "attention_norm.gamma": vector,
            "attention_norm.beta": vector,
            **{f"attention.w_{name}": square for name in "qkvo"},
            "feed_forward_norm.gamma": vector,
            "feed_forward_norm.beta": vector,
            "feed_forward.w_1": (width, inner),
            "feed_forward.b_1": (inner,),
            "feed_forward.w_2": (inner, width),
            "feed_forward.b_2": vector,
        }

    # ------------------------------------------------------------------------------- counting

    def parameter_groups(self, *, vocab_size, block_size, d_model, n_layers, d_ff, packed):
        groups = self.ledger(vocab_size, block_size, d_model, n_layers, d_ff, packed)
        tensors = self.tensors(n_layers, packed)
        return {"groups": groups, "total": self.sum_of(groups), "tensors": tensors}

    def ledger(self, words, context, width, layers, inner, packed):
        del packed
        return {
            "token_embedding": words * width,
            "position_embedding": context * width,
            "attention": layers * 4 * width**2,
            "feed_forward_weights": layers * 2 * width * inner,
            "feed_forward_biases": layers * (inner + width),
            "block_norms": layers * 4 * width,
            "final_norm": 2 * width,
            "head": width * words,
        }

    def tensors(self, layers, packed):
        return 5 + layers * (10 if packed else 12)

    def sum_of(self, groups):
        return sum(groups.values())

    def training_bytes(self, *, parameters, bytes_per_number):
        return {"bytes": parameters * bytes_per_number * 4}

    def activation_elements(self, *, batch, length, n_heads, vocab_size):
        return {"scores": batch * n_heads * length**2, "logits": batch * length * vocab_size}

    def training_flops(self, *, parameters, tokens):
        return {"flops": 6 * parameters * tokens}

    # --------------------------------------------------------------------------- construction

    def initialize(
        self, *, vocab_size, block_size, d_model, n_heads, n_layers, d_ff, dropout, random_seed
    ):
        self.build(
            vocab_size=vocab_size,
            block_size=block_size,
            d_model=d_model,
            n_heads=n_heads,
            n_layers=n_layers,
            d_ff=d_ff,
            dropout=dropout,
        )
        shapes = self.model_shapes(vocab_size, block_size, d_model, n_heads, n_layers, d_ff)
        return {"parameters": self.first_values(shapes, random_seed)}

    def first_values(self, shapes, seed):
        source = self.source(seed)
        return {name: self.first_value(name, shape, source) for name, shape in shapes.items()}

    def source(self, seed):
        return torch.Generator().manual_seed(seed)

    def first_value(self, name, shape, source):
        kind = name.rsplit(".", 1)[-1]
        if kind == "gamma":
            return self.first_scale(shape, source)
        if kind == "beta":
            return self.first_shift(shape, source)
        if kind in ("b_1", "b_2"):
            return self.first_bias(shape, source)
        return self.first_weight(shape, source)

    def first_scale(self, shape, source):
        return torch.ones(shape, dtype=DOUBLE)

    def first_shift(self, shape, source):
        return torch.zeros(shape, dtype=DOUBLE)

    def first_bias(self, shape, source):
        return torch.zeros(shape, dtype=DOUBLE)

    def first_weight(self, shape, source):
        return 0.02 * torch.randn(shape, generator=source, dtype=DOUBLE)

    def initialize_linear(self, *, d_in, d_out, with_bias, random_seed):
        self.need_inputs(d_in)
        self.need_outputs(d_out)
        source = self.source(random_seed)
        weight = self.linear_weight(d_in, d_out, source)
        if not with_bias:
            return {"weight": weight}
        return {"weight": weight, "bias": self.linear_bias(d_in, d_out, source)}

    def need_inputs(self, d_in):
        if d_in == 0:
            raise Rejected("zero-input-width", "nothing comes in")

    def need_outputs(self, d_out):
        if d_out == 0:
            raise Rejected("zero-output-width", "nothing comes out")

    def linear_weight(self, d_in, d_out, source):
        uniform = torch.rand((d_in, d_out), generator=source, dtype=DOUBLE)
        return (2 * uniform - 1) * self.reach(d_in, d_out)

    def reach(self, d_in, d_out):
        return (6 / (d_in + d_out)) ** 0.5

    def linear_bias(self, d_in, d_out, source):
        return torch.zeros(d_out, dtype=DOUBLE)

    def splitmix64(self, *, random_seed, count):
        states = [(random_seed + k * 0x9E3779B97F4A7C15) % 2**64 for k in range(1, count + 1)]
        return np.array([self.mixed(state) for state in states], dtype=np.uint64)

    def mixed(self, z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    # ------------------------------------------------------------------------------- training

    def train(
        self,
        tokens,
        targets,
        parameters,
        *,
        heads,
        eps,
        ignore_index,
        steps,
        learning_rate,
        beta_1,
        beta_2,
        adam_eps,
        weight_decay,
        max_norm,
    ):
        def loss_of(values):
            return self.decoder_loss(
                tokens, targets, values, heads=heads, eps=eps, ignore_index=ignore_index
            )

        settings = {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "beta_2": beta_2,
            "eps": adam_eps,
            "weight_decay": weight_decay,
        }
        model = dict(parameters)
        seen = self.discovered(model)
        held = self.handed_over(seen)
        losses, norms, state, gathered = [], {name: [] for name in seen}, {}, {}
        told = []
        for step in range(1, steps + 1):
            before = model
            loss, found = self.differentiated(loss_of, model, seen)
            gathered = self.accumulated(gathered, found)
            clipped = self.limited(gathered, max_norm)
            told.append(self.shown(gathered, clipped, model, weight_decay))
            for name, g in told[-1].items():
                norms[name].append(self.norm_of([g]))
            model = self.stepped(model, clipped, held, state, step, settings)
            losses.append(self.noted(loss, lambda now=model: loss_of(now)))
        logits = self.decoder(tokens, self.asked_last(before, model), heads=heads, eps=eps)
        return {
            "losses": torch.stack(losses),
            "gradient_norms": {name: torch.stack(rows) for name, rows in norms.items() if rows},
            "gradients": self.kept(told),
            "parameters": {name: model[name] for name in seen},
            "optimised": {name: model[name].numel() for name in held},
            "predictions": logits.argmax(dim=-1),
        }

    def discovered(self, model):
        """What the model finds of its parameters."""
        return list(model)

    def handed_over(self, names):
        """What the optimiser is given."""
        return names

    def differentiated(self, loss_of, model, seen):
        """The loss and the gradients that came."""
        leaves = {name: value.detach().clone().requires_grad_() for name, value in model.items()}
        loss = loss_of(leaves)
        wanted = [leaves[name] for name in seen]
        found = torch.autograd.grad(loss, wanted, allow_unused=True)
        gradients = {n: g for n, g in zip(seen, found, strict=True) if g is not None}
        return loss.detach(), gradients

    def accumulated(self, old, new):
        return new

    def limited(self, gradients, max_norm):
        return self.clip_gradients(gradients, max_norm=max_norm)["gradients"]

    def shown(self, gradients, clipped, model, decay):
        return gradients

    def kept(self, told):
        return told[-1]

    def stepped(self, model, gradients, held, state, step, settings):
        after = dict(model)
        for name in held:
            if name in gradients:
                after[name] = self.one(name, model[name], gradients[name], state, step, settings)
        return after

    def one(self, name, value, gradient, state, step, settings):
        m, v = state.get(name, (torch.zeros_like(value), torch.zeros_like(value)))
        found = self.adamw_step(value, gradient, m, v, step=step, **settings)
        state[name] = found["first_moment"], found["second_moment"]
        return found["parameter"]

    def noted(self, loss, after):
        return loss

    def asked_last(self, before, after):
        return after
