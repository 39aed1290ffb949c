"""The rules of counting: parameters by group, bytes, activations, operations."""

from __future__ import annotations

from conformance.errors import Rejected
from conformance.truth.arithmetic.nodes import Node


class ResourceRules:
    """decoder-block, "Shapes and Parameters: Counting Every Learnable Scalar"; what each leaves
    out is said in the clauses.
    """

    def parameter_groups(
        self,
        *,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_layers: int,
        d_ff: int,
        packed: bool,
    ) -> dict[str, dict[str, int] | int]:
        """Scalars by group, their total, and how many tensors hold them.

        ``packed``: queries, keys and values in one tensor [3 d, d], which changes no count of
        scalars.
        """
        shapes = self.parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        groups: dict[str, int] = dict.fromkeys(_GROUPS, 0)
        for name, shape in shapes.items():
            groups[self.group(name)] += self.elements(shape)
        total, tensors = self.total(groups), self.tensors(list(shapes), packed)
        return {"groups": groups, "total": total, "tensors": tensors}

    def total(self, groups: dict[str, int]) -> int:
        """The sum over the groups."""
        return sum(groups.values())

    def tensors(self, names: list[str], packed: bool) -> int:
        """How many tensors there are; one holds queries, keys and values where they are packed."""
        merged = [name for name in names if packed and name.endswith((".w_q", ".w_k"))]
        return len(names) - len(merged)

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> dict[str, list[int]]:
        """Every parameter of the model by name, in order; the head is not the embedding."""
        shapes = {
            "token_embedding": [vocab_size, d_model],
            "position_embedding": [block_size, d_model],
        }
        for k in range(n_layers):
            block = self.block_shapes(d_model, d_ff)
            shapes |= {f"blocks.{k}.{name}": shape for name, shape in block.items()}
        return shapes | {
            "final_norm.gamma": [d_model],
            "final_norm.beta": [d_model],
            "head": [d_model, vocab_size],
        }

    def block_shapes(self, d_model: int, d_ff: int) -> dict[str, list[int]]:
        """Two norms of its own, four square maps without bias, two maps with bias."""
        return {
            "attention_norm.gamma": [d_model],
            "attention_norm.beta": [d_model],
            "attention.w_q": [d_model, d_model],
            "attention.w_k": [d_model, d_model],
            "attention.w_v": [d_model, d_model],
            "attention.w_o": [d_model, d_model],
            "feed_forward_norm.gamma": [d_model],
            "feed_forward_norm.beta": [d_model],
            "feed_forward.w_1": [d_model, d_ff],
            "feed_forward.b_1": [d_ff],
            "feed_forward.w_2": [d_ff, d_model],
            "feed_forward.b_2": [d_model],
        }

    def group(self, name: str) -> str:
        """The group of a parameter, by its name."""
        inner = name.split(".", 2)[-1] if name.startswith("blocks.") else name
        if inner.startswith("head"):
            return "head"
        if inner.startswith("attention."):
            return "attention"
        if inner.startswith("feed_forward."):
            return "feed_forward_biases" if ".b_" in inner else "feed_forward_weights"
        if inner.startswith("final_norm"):
            return "final_norm"
        return "block_norms" if "norm" in inner else inner

    def elements(self, shape: list[int]) -> int:
        total = 1
        for size in shape:
            total *= size
        return total

    def training_bytes(self, *, parameters: int, bytes_per_number: int) -> int:
        """Parameters, gradients and two moments of Adam: four arrays.

        gradients-and-accounting, "The Scope of Memory and Compute Estimates".
        """
        return self.training_arrays() * bytes_per_number * parameters

    def training_arrays(self) -> int:
        return 4

    def activation_elements(
        self, *, batch: int, length: int, n_heads: int, vocab_size: int
    ) -> dict[str, int]:
        """Attention scores of one block [B, h, T, T], and logits [B, T, V]."""
        return {
            "scores": self.score_elements(batch, length, n_heads),
            "logits": self.logit_elements(batch, length, vocab_size),
        }

    def score_elements(self, batch: int, length: int, n_heads: int) -> int:
        return batch * n_heads * length * length

    def logit_elements(self, batch: int, length: int, vocab_size: int) -> int:
        return batch * length * vocab_size

    def training_flops(self, *, parameters: int, tokens: int) -> int:
        """6 P D: a budget, not a measurement."""
        return self.flops_of_one() * parameters * tokens

    def flops_of_one(self) -> int:
        """Of one parameter and one token: two forward, four backward."""
        return 6


_GROUPS = (
    "token_embedding",
    "position_embedding",
    "attention",
    "feed_forward_weights",
    "feed_forward_biases",
    "block_norms",
    "final_norm",
    "head",
)


class ConfigurationRules(ResourceRules):
    """trainable-decoder, "Freeze the Public Interface Before Organizing the Internals"."""

    def build(
        self,
        *,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: Node,
    ) -> dict[str, dict[str, list[int]] | int]:
        """The shapes of the registered parameters by name, and the sum of their elements.

        Raises Rejected as ``check_configuration`` does.
        """
        registered = self._configured(
            vocab_size, block_size, d_model, n_heads, n_layers, d_ff, dropout
        )
        return {"shapes": registered, "count": self.count(registered)}

    def _configured(
        self,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: Node,
    ) -> dict[str, list[int]]:
        """What a model of this configuration registers, once the configuration is checked."""
        sizes = {
            "vocab_size": vocab_size,
            "block_size": block_size,
            "d_model": d_model,
            "n_heads": n_heads,
            "n_layers": n_layers,
            "d_ff": d_ff,
        }
        self.check_configuration(sizes, dropout)
        shapes = self.parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return self.registered(shapes, sizes)

    def count(self, shapes: dict[str, list[int]]) -> int:
        """The sum over what is registered."""
        return sum(map(self.elements, shapes.values()))

    def check_configuration(self, sizes: dict[str, int], dropout: Node) -> None:
        """Positive sizes, a vocabulary with the reserved tokens, heads that divide, dropout."""
        self.check_positive(sizes)
        self.check_vocabulary(sizes["vocab_size"])
        self.check_division(sizes["d_model"], sizes["n_heads"])
        self.check_dropout(dropout)

    def check_positive(self, sizes: dict[str, int]) -> None:
        for name, size in sizes.items():
            if size <= 0:
                raise Rejected("not-positive", f"{name} is {size}")

    def check_division(self, width: int, heads: int) -> None:
        if not heads or width % heads:
            raise Rejected("heads", f"{heads} heads do not divide a width of {width}")

    def check_dropout(self, dropout: Node) -> None:
        sign = dropout.tape.domain.sign
        if float(sign(dropout.value)) < 0 or float(sign((dropout - 1).value)) > 0:
            raise Rejected("dropout", "dropout is a probability")

    def check_vocabulary(self, vocab_size: int) -> None:
        """Three tokens are reserved."""
        if vocab_size < 3:
            raise Rejected("vocabulary", f"{vocab_size} words leave no room for the reserved ones")

    def registered(
        self, shapes: dict[str, list[int]], sizes: dict[str, int]
    ) -> dict[str, list[int]]:
        """What the model of these sizes finds of its own parameters when it is asked for them."""
        del sizes
        return {name: shape for name, shape in shapes.items() if self.registers(name)}

    def registers(self, name: str) -> bool:
        """Whether the model finds the parameter of that name: it finds all of them."""
        return bool(name)
