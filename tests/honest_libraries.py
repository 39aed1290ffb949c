"""The same operations as PyTorch and JAX compute them, on the CPU, by several of their paths."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as tf
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.adversarial import Answers

# ------------------------------------------------------------------------------------------ torch


def torch_vjp(function: Callable, g: np.ndarray | None, *arrays: np.ndarray) -> list[np.ndarray]:
    """The value (``g`` None) or the gradients of all ``arrays``."""
    tensors = [torch.tensor(a, requires_grad=g is not None) for a in arrays]
    y = function(*tensors)
    if g is None:
        return [y.numpy()]
    return [found.numpy() for found in torch.autograd.grad(y, tensors, torch.tensor(g))]


TORCH_SOFTMAXES = {
    "softmax": lambda x: torch.softmax(x, -1),
    "exp of log_softmax": lambda x: torch.log_softmax(x, -1).exp(),
    "by hand": lambda x: (
        (x - x.amax(-1, keepdim=True)).exp()
        / (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)
    ),
}


def _with(backend: SDPBackend) -> Callable:
    def core(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(backend):
            return tf.scaled_dot_product_attention(q, k, v, is_causal=True)

    return core


def _masked(q: Any, k: Any, v: Any) -> Any:
    allowed = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
    return tf.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def _by_hand(q: Any, k: Any, v: Any) -> Any:
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    s = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(later, -torch.inf)
    return torch.softmax(s, -1) @ v


def _einsum(q: Any, k: Any, v: Any) -> Any:
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    s = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    p = s.masked_fill(later, torch.finfo(s.dtype).min).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, v)


TORCH_ATTENTIONS = {
    "default": lambda q, k, v: tf.scaled_dot_product_attention(q, k, v, is_causal=True),
    "math": _with(SDPBackend.MATH),
    "flash": _with(SDPBackend.FLASH_ATTENTION),
    "masked": _masked,
    "by hand": _by_hand,
    "einsum": _einsum,
}


def torch_attention(core: Callable, heads: int, *, together: bool = False) -> Callable:
    def attention(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any) -> Any:
        if together:
            q, k, v = (x @ torch.cat([w_q, w_k, w_v], dim=1)).chunk(3, dim=-1)
        else:
            q, k, v = x @ w_q, x @ w_k, x @ w_v
        q, k, v = (a.unflatten(-1, (heads, -1)).transpose(1, 2) for a in (q, k, v))
        return core(q, k, v).transpose(1, 2).flatten(2) @ w_o

    return attention


def torch_losses(targets: np.ndarray) -> dict[str, Callable]:
    t = torch.tensor(targets)
    scored = t >= 0

    def gathered(z: Any) -> Any:
        found = torch.log_softmax(z, -1)[scored].gather(-1, t[scored][:, None])
        return -found.mean()

    def by_hand(z: Any) -> Any:
        chosen = z.gather(-1, t.clamp(min=0)[..., None])[..., 0]
        return ((torch.logsumexp(z, -1) - chosen) * scored).sum() / scored.sum()

    return {
        "cross_entropy": lambda z: tf.cross_entropy(z, t, ignore_index=-100),
        "gathered": gathered,
        "by hand": by_hand,
    }


# -------------------------------------------------------------------------------------------- jax


def jax_vjp(function: Callable, g: np.ndarray | None, *arrays: np.ndarray) -> list[np.ndarray]:
    """As ``torch_vjp``, compiled."""

    @jax.jit
    def found(*given: Any) -> Any:
        if g is None:
            return [function(*given)]
        y, pull = jax.vjp(function, *given)
        return list(pull(jnp.asarray(g, y.dtype)))

    with jax.enable_x64(arrays[0].dtype == np.float64):
        return [np.asarray(a) for a in found(*arrays)]


def jax_attention(core: Callable, heads: int) -> Callable:
    def attention(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any) -> Any:
        shape = (*x.shape[:2], heads, -1)
        y = core(*((x @ w).reshape(shape) for w in (w_q, w_k, w_v)))
        return y.reshape(x.shape) @ w_o

    return attention


def _jax_by_hand(q: Any, k: Any, v: Any) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    allowed = jnp.tril(jnp.ones(s.shape[-2:], bool))
    p = jax.nn.softmax(jnp.where(allowed, s, -jnp.inf))
    return jnp.einsum("bhqk,bkhd->bqhd", p, v)


def _jax_library(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def jax_attentions(dtype: np.dtype) -> dict[str, Callable]:
    """In double precision the library's own is not honest: it takes its softmax in single."""
    library = {"dot_product_attention": _jax_library} if dtype == np.float32 else {}
    return {**library, "by hand": _jax_by_hand}


def jax_losses(targets: np.ndarray) -> dict[str, Callable]:
    scored = targets >= 0
    t = np.where(scored, targets, 0)

    def by_log_total(z: Any) -> Any:
        chosen = jnp.take_along_axis(z, t[..., None], -1)[..., 0]
        losses = jax.nn.logsumexp(z, axis=-1) - chosen
        return jnp.sum(losses, where=scored) / scored.sum()

    def by_one_hot(z: Any) -> Any:
        y = jax.nn.one_hot(t, z.shape[-1], dtype=z.dtype)
        losses = -(jax.nn.log_softmax(z) * y).sum(-1)
        return jnp.mean(losses, where=scored)

    return {"log total": by_log_total, "one-hot": by_one_hot}


# ---------------------------------------------------------------------------------------- answers


def attention_answers(heads: int, g: Any, *arrays: np.ndarray, jitted: bool) -> Answers:
    """The value, or with ``g`` the gradients, by every path; ``jitted``: by JAX too."""
    outputs = ("y",) if g is None else ("x", "w_q", "w_k", "w_v", "w_o")
    for (name, core), together in product(TORCH_ATTENTIONS.items(), (False, True)):
        found = torch_vjp(torch_attention(core, heads, together=together), g, *arrays)
        yield from zip(outputs, [f"torch {name}"] * len(outputs), found, strict=True)
    for name, core in jax_attentions(arrays[0].dtype).items() if jitted else ():
        found = jax_vjp(jax_attention(core, heads), g, *arrays)
        yield from zip(outputs, [f"jax {name}"] * len(outputs), found, strict=True)


def loss_answers(output: str, g: Any, z: np.ndarray, t: np.ndarray, *, jitted: bool) -> Answers:
    for name, loss in torch_losses(t).items():
        yield output, f"torch {name}", torch_vjp(loss, g, z)[0]
    for name, loss in jax_losses(t).items() if jitted else ():
        yield output, f"jax {name}", jax_vjp(loss, g, z)[0]


def jax_library_attention(heads: int, *arrays: np.ndarray) -> Answers:
    yield (
        "y",
        "dot_product_attention",
        jax_vjp(jax_attention(_jax_library, heads), None, *arrays)[0],
    )
