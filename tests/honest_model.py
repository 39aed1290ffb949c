"""Honest blocks and decoders, and their gradients, composed of one kernel for each part."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests import honest_attention as attentions
from tests import honest_kernels as kernels
from tests import honest_loss as losses
from tests import honest_norm as norms
from tests.honest_kernels import Array
from tests.honest_recipes import Recipe, attention_parts

EPS = 1e-5
Named = dict[str, Array]


def under(prefix: str, parameters: Named) -> Named:
    return {
        name.removeprefix(prefix): a for name, a in parameters.items() if name.startswith(prefix)
    }


def linear(x: Array, weight: Array, bias: Array, recipe: Recipe) -> Array:
    if recipe["biased"] == "first":
        return kernels.linear_from(bias, x, weight)
    return kernels.linear(x, weight, bias, product=recipe["product"])


def layer_norm(x: Array, gamma: Array, beta: Array, recipe: Recipe) -> Array:
    mean, variance = recipe["statistics"](x)
    return recipe["norm"](x, mean, recipe["eps"](variance, EPS), gamma, beta)


def layer_norm_vjp(g: Array, x: Array, gamma: Array, recipe: Recipe) -> Named:
    mean, variance = recipe["statistics"](x)
    root = np.sqrt(recipe["eps"](variance, EPS))
    dx = recipe["norm_gradient"](g, x, mean, root, gamma, recipe["total"])
    return {
        "x": dx,
        **norms.affine_vjp(g, recipe["normalised"](x, mean, root), total=recipe["total"]),
    }


def added(x: Array, left: Array, weight: Array, recipe: Recipe) -> Array:
    """x + left @ weight: the product first, or a running sum that starts at the trunk."""
    if recipe["trunk"] == "last":
        return np.asarray(x + recipe["product"](left, weight))
    total = x
    for k in range(left.shape[-1]):
        total = total + left[..., k, None] * weight[k]
    return total


def attention_sublayer(x: Array, p: Named, heads: int, recipe: Recipe) -> Array:
    """``p`` holds gamma, beta and the four weights."""
    parts = attention_parts(recipe)
    normalised = layer_norm(x, p["gamma"], p["beta"], recipe)
    projected = attentions.project(normalised, p["w_q"], p["w_k"], p["w_v"], heads, parts)
    y, _ = attentions.attend(*projected, parts)
    return added(x, attentions.merged(y), p["w_o"], recipe)


def attention_sublayer_vjp(g: Array, x: Array, p: Named, heads: int, recipe: Recipe) -> Named:
    normalised = layer_norm(x, p["gamma"], p["beta"], recipe)
    weights = (p["w_q"], p["w_k"], p["w_v"], p["w_o"])
    parts = attention_parts(recipe)
    found = attentions.causal_attention_vjp(g, normalised, *weights, heads, parts)
    through = layer_norm_vjp(found.pop("x"), x, p["gamma"], recipe)
    return {**found, **through, "x": np.asarray(g + through["x"])}


def hidden(x: Array, p: Named, recipe: Recipe) -> Array:
    normalised = layer_norm(x, p["gamma"], p["beta"], recipe)
    z = linear(normalised, p["w_1"], p["b_1"], recipe)
    return recipe["gelu"](z, recipe["argument"])


def feed_forward_sublayer(x: Array, p: Named, recipe: Recipe) -> Array:
    inner = hidden(x, p, recipe)
    if recipe["trunk"] == "first":
        return added(x + p["b_2"], inner, p["w_2"], recipe)
    return np.asarray(x + linear(inner, p["w_2"], p["b_2"], recipe))


def feed_forward_sublayer_vjp(g: Array, x: Array, p: Named, recipe: Recipe) -> Named:
    def gelu_gradient(upstream: Array, z: Array) -> Array:
        how = (recipe["argument"], recipe["cdf"], recipe["density"])
        return recipe["gelu_gradient"](upstream, z, *how)

    found = kernels.feed_forward_vjp(
        *(g, layer_norm(x, p["gamma"], p["beta"], recipe), p["w_1"], p["b_1"], p["w_2"]),
        product=recipe["product"],
        total=recipe["total"],
        gelu=partial(recipe["gelu"], argument=recipe["argument"]),
        gelu_gradient=gelu_gradient,
    )
    through = layer_norm_vjp(found.pop("x"), x, p["gamma"], recipe)
    return {**found, **through, "x": np.asarray(g + through["x"])}


def block(x: Array, p: Named, heads: int, recipe: Recipe) -> Array:
    u = attention_sublayer(x, branch(p, "attention"), heads, recipe)
    return feed_forward_sublayer(u, branch(p, "feed_forward"), recipe)


def block_vjp(g: Array, x: Array, p: Named, heads: int, recipe: Recipe) -> Named:
    first, second = branch(p, "attention"), branch(p, "feed_forward")
    u = attention_sublayer(x, first, heads, recipe)
    outer = feed_forward_sublayer_vjp(g, u, second, recipe)
    inner = attention_sublayer_vjp(outer.pop("x"), x, first, heads, recipe)
    dx = inner.pop("x")
    return {"x": dx, **named(inner, "attention"), **named(outer, "feed_forward")}


def branch(p: Named, name: str) -> Named:
    return {**under(f"{name}_norm.", p), **under(f"{name}.", p)}


def named(found: Named, name: str) -> Named:
    norm = ("gamma", "beta")
    return {f"{name}_norm.{k}" if k in norm else f"{name}.{k}": a for k, a in found.items()}


# ---------------------------------------------------------------------------------- decoder, loss


def decoder(tokens: np.ndarray, p: Named, heads: int, recipe: Recipe) -> tuple[list[Array], Array]:
    """What enters each block and the final norm, and the logits."""
    trunk = [losses.embed(tokens, p["token_embedding"], p["position_embedding"])]
    for k in range(blocks(p)):
        trunk.append(block(trunk[-1], under(f"blocks.{k}.", p), heads, recipe))
    normalised = layer_norm(trunk[-1], p["final_norm.gamma"], p["final_norm.beta"], recipe)
    return trunk, recipe["product"](normalised, p["head"])


def blocks(p: Named) -> int:
    return 1 + max(int(name.split(".")[1]) for name in p if name.startswith("blocks."))


def cross_entropy(z: Array, targets: np.ndarray, recipe: Recipe) -> Array:
    """The unscored positions have the target -100."""
    scored = targets >= 0
    return recipe["mean"](recipe["losses"](z[scored], targets[scored]))


def cross_entropy_vjp(g: Array, z: Array, targets: np.ndarray, recipe: Recipe) -> Array:
    scored = targets >= 0
    found = np.zeros_like(z)
    rows, chosen = z[scored], targets[scored]
    found[scored] = recipe["loss_gradient"](recipe["p"](rows), rows, chosen, g)
    return found


def decoder_loss(
    tokens: np.ndarray, targets: np.ndarray, p: Named, heads: int, recipe: Recipe
) -> Array:
    return cross_entropy(decoder(tokens, p, heads, recipe)[1], targets, recipe)


def decoder_loss_vjp(
    g: Array, tokens: np.ndarray, targets: np.ndarray, p: Named, heads: int, recipe: Recipe
) -> Named:
    trunk, logits = decoder(tokens, p, heads, recipe)
    dz = cross_entropy_vjp(g, logits, targets, recipe)
    last = layer_norm(trunk[-1], p["final_norm.gamma"], p["final_norm.beta"], recipe)
    product = recipe["product"]
    found = {"head": product(last.reshape(-1, last.shape[-1]).T, dz.reshape(-1, dz.shape[-1]))}
    through = layer_norm_vjp(product(dz, p["head"].T), trunk[-1], p["final_norm.gamma"], recipe)
    upstream = through.pop("x")
    found |= {f"final_norm.{name}": a for name, a in through.items()}
    for k in reversed(range(blocks(p))):
        inner = block_vjp(upstream, trunk[k], under(f"blocks.{k}.", p), heads, recipe)
        upstream = inner.pop("x")
        found |= {f"blocks.{k}.{name}": a for name, a in inner.items()}
    sizes = (len(p["token_embedding"]), len(p["position_embedding"]))
    return {**found, **losses.embed_vjp(upstream, tokens, sizes, recipe["table"], recipe["total"])}
