"""What the specification forbids and the libraries accept: one check for each, in its order.

Each check raises ``Rejected`` for the first rule that is broken. Arrays may be those of any of the
libraries: of most only shape and dtype are read; of tokens and targets the values too.
"""

from __future__ import annotations

from typing import Any

from conformance import Rejected

from ._parameters import Sizes


def check_linear(x: Any, weight: Any, bias: Any | None) -> None:
    """A weight of rank 2 with rows and columns, a bias as wide as it, an input that fits it."""
    if weight.ndim != 2:
        raise Rejected("weight-rank", f"the weight has rank {weight.ndim}, not 2")
    d_in, d_out = weight.shape
    if d_in == 0:
        raise Rejected("zero-input-width", "the weight has no rows")
    if d_out == 0:
        raise Rejected("zero-output-width", "the weight has no columns")
    if bias is not None and bias.ndim != 1:
        raise Rejected("bias-rank", f"the bias has rank {bias.ndim}, not 1")
    if bias is not None and bias.shape[0] != d_out:
        raise Rejected("bias-width", f"the bias has width {bias.shape[0]}, not {d_out}")
    if x.ndim == 0:
        raise Rejected("input-rank", "the input has no axis")
    if x.shape[-1] != d_in:
        raise Rejected("input-width", f"the input has width {x.shape[-1]}, not {d_in}")


def check_same_shape(x: Any, increment: Any) -> None:
    """Nothing is broadcast in a residual addition."""
    if x.shape != increment.shape:
        shapes = f"{tuple(x.shape)} and {tuple(increment.shape)}"
        raise Rejected("shape-mismatch", f"{shapes} differ in shape")


def check_attention(x: Any, heads: int) -> None:
    """An input ``[B, T, d]``, and heads that divide d."""
    if x.ndim != 3:
        raise Rejected("input-rank", f"the input has rank {x.ndim}, not 3")
    check_heads(x.shape[-1], heads)


def check_heads(width: int, heads: int) -> None:
    """At least one head, and all equally wide."""
    if heads <= 0 or width % heads:
        raise Rejected("heads", f"{heads} heads do not divide a width of {width}")


def check_tokens(tokens: Any, vocabulary: int, context: int) -> None:
    """int64 ``[B, T]`` with T in 1..context, each id a row of the table of tokens.

    NumPy would read a negative id from the end of the table, PyTorch take int32, and JAX clamp
    what lies outside.
    """
    if tokens.ndim != 2:
        raise Rejected("token-rank", f"the tokens have rank {tokens.ndim}, not 2")
    if not _is_int64(tokens):
        raise Rejected("token-dtype", f"the tokens are {tokens.dtype}, not int64")
    length = tokens.shape[1]
    if length == 0:
        raise Rejected("no-tokens", "the sequences have no tokens")
    if length > context:
        raise Rejected("too-long", f"{length} tokens for {context} positions")
    _check_range("token", tokens, vocabulary)


def check_targets(targets: Any, logits_shape: tuple[int, ...], ignore_index: int) -> None:
    """int64, one for each position of the logits; one or more is scored, each of them a class."""
    positions = tuple(logits_shape[:-1])
    if tuple(targets.shape) != positions:
        shapes = f"targets {tuple(targets.shape)} for positions {positions}"
        raise Rejected("target-shape", shapes)
    if not _is_int64(targets):
        raise Rejected("target-dtype", f"the targets are {targets.dtype}, not int64")
    scored = targets[targets != ignore_index]
    if len(scored) == 0:
        raise Rejected("no-scored-target", f"every target is {ignore_index}")
    _check_range("target", scored, logits_shape[-1])


def check_configuration(sizes: Sizes, n_heads: int, dropout: float) -> None:
    """Positive sizes, three words or more, heads that divide, a dropout that is a probability.

    In this order, and before anything is allocated.
    """
    for name, size in {**sizes._asdict(), "n_heads": n_heads}.items():
        if size <= 0:
            raise Rejected("not-positive", f"{name} is {size}")
    if sizes.vocab_size < 3:
        raise Rejected("vocabulary", f"{sizes.vocab_size} words; three are reserved")
    check_heads(sizes.d_model, n_heads)
    if not 0 <= dropout <= 1:
        raise Rejected("dropout", f"a dropout of {dropout} is no probability")


def check_widths(d_in: int, d_out: int) -> None:
    """A new linear layer has rows and columns."""
    if d_in <= 0:
        raise Rejected("zero-input-width", f"an input width of {d_in}")
    if d_out <= 0:
        raise Rejected("zero-output-width", f"an output width of {d_out}")


def _is_int64(array: Any) -> bool:
    # A dtype of NumPy or JAX knows its name; that of PyTorch is compared by its own.
    return bool(array.dtype == "int64") or str(array.dtype) == "torch.int64"


def _check_range(what: str, ids: Any, size: int) -> None:
    if 0 not in ids.shape and not 0 <= int(ids.min()) <= int(ids.max()) < size:
        raise Rejected(f"{what}-range", f"a {what} outside 0..{size - 1}")
