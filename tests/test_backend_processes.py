"""PyTorch and JAX inside a process: what they leave alone, compile, and pass through."""

from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import torch

from conformance import Question, Rejected
from conformance.backends.jax import JaxBackend
from conformance.backends.torch import TorchBackend
from tests import plain_decoder

LINEAR = {"x": [[[1, 2], [-1, 3]]], "weight": [[1, 0, -1], [2, 0.5, 1]], "bias": [0.5, -0.5, 1]}
NORM = {"gamma": [1, 1, 1], "beta": [0, 0, 0], "eps": 1e-5}


def ask(backend, operation, arguments, upstream=None, wrt=None, dtype="float64"):
    """The answer to one question; with ``upstream`` the question is for gradients."""
    given = {k: v if k == "eps" else np.asarray(v, dtype) for k, v in arguments.items()}
    if upstream is None:
        asked = {"mode": "evaluate", "outputs": ("y",)}
    else:
        wrt = wrt or tuple(name for name in given if name != "eps")
        asked = {"mode": "vjp", "upstream": {"y": np.asarray(upstream, dtype)}, "wrt": wrt}
    return backend.answer(Question(operation=operation, dtype=dtype, arguments=given, **asked))


def outputs(*question, **more):
    answer = ask(*question, **more)
    assert answer.status == "outputs", answer.message
    return answer.outputs


def test_an_argument_without_influence_has_no_gradient_in_torch_and_zeros_in_jax():
    """A missing key says that there is no path; JAX can't tell that from a gradient of zero."""

    def ignore_gamma(self, x, gamma, beta, *, eps):
        return x + beta

    def ignore_all(self, x, gamma, beta, *, eps):
        return 0 * x.detach()

    question = ("layer_norm", {**NORM, "x": [1, 2, 4]}, [1, 2, 3])
    torch_backend = type("Ignoring", (TorchBackend,), {"layer_norm": ignore_gamma})()
    assert set(outputs(torch_backend, *question)) == {"x", "beta"}
    cut_off = type("Ignoring", (TorchBackend,), {"layer_norm": ignore_all})()
    assert outputs(cut_off, *question) == {}
    jax_backend = type("Ignoring", (JaxBackend,), {"layer_norm": ignore_gamma})()
    assert outputs(jax_backend, *question)["gamma"].tolist() == [0, 0, 0]


def test_torch_multiplies_in_full_precision_and_leaves_the_process_as_it_was():
    """A process that has lowered the precision of products gets it back; the answer is not low."""
    inside = []

    class Watched(TorchBackend):
        def linear(self, x, weight, bias=None):
            inside.append(torch.backends.mkldnn.matmul.fp32_precision)
            return super().linear(x, weight, bias)

    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        outputs(Watched(), "linear", LINEAR)
        outputs(Watched(), "linear", LINEAR, [[[1, 0, -1], [0.5, 2, 1]]])
        assert ask(Watched(), "linear", {"x": [1], "weight": [1]}).status == "rejected"
        assert inside == ["ieee", "ieee", "ieee"]
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision(before)


def test_torch_values_that_carry_a_graph_are_values():
    """An implementation with trainable parameters of its own is answered for like any other."""

    class Trainable(TorchBackend):
        def gelu(self, x):
            return x * torch.nn.Parameter(torch.tensor(2.0))

    assert outputs(Trainable(), "gelu", {"x": [1, 2]})["y"].tolist() == [2, 4]


def test_torch_computes_on_the_device_of_the_adapter():
    """A subclass chooses the device by naming it; arrays are carried there, numbers are not."""

    class Elsewhere(TorchBackend):
        device = "meta"

        def layer_norm(self, x, gamma, beta, *, eps):
            return torch.tensor([t.device.type == "meta" for t in (x, gamma, beta)])

    assert outputs(Elsewhere(), "layer_norm", {**NORM, "x": [1, 2, 4]})["y"].all()
    assert (TorchBackend().describe().device, Elsewhere().describe().device) == ("cpu", "meta")


def test_jax_leaves_the_process_as_it_was():
    """float64 and full precision hold inside a call; outside, float32 stays the default."""
    inside = []

    class Watched(JaxBackend):
        def gelu(self, x):
            inside.append((jnp.zeros(1).dtype, jax.config.jax_default_matmul_precision))
            return super().gelu(x)

    outputs(Watched(), "gelu", {"x": [1]})
    outputs(Watched(), "gelu", {"x": [1]}, [1])
    assert inside == [("float64", "highest")] * 2
    assert jnp.zeros(1).dtype == "float32"
    assert jax.config.jax_default_matmul_precision is None


@contextmanager
def compilations():
    """A list that grows with every function that JAX compiles meanwhile."""
    compiled = []

    def listen(event, seconds, **about):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(about)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_jax_compiles_once_for_each_operation_mode_shape_dtype_and_attribute():
    """Other values are no reason to compile again, nor is carrying an array to JAX and back."""
    backend = JaxBackend()
    three, five = {**NORM, "x": [1, 2, 4]}, {**NORM, "x": [[1, 2, 4]] * 5}
    with compilations() as compiled:
        for _ in range(2):
            outputs(backend, "layer_norm", three)
            outputs(backend, "layer_norm", {**three, "x": [7, 5, 1], "beta": [1, 2, 3]})
            outputs(backend, "layer_norm", five)
            outputs(backend, "layer_norm", three, dtype="float32")
            outputs(backend, "layer_norm", {**three, "eps": 0.5})
            outputs(backend, "gelu", {"x": [1, 2, 4]})
            outputs(backend, "layer_norm", three, [1, 0, 0])
            outputs(backend, "layer_norm", {**three, "x": [7, 5, 1]}, [0, 2, 1])
            outputs(backend, "layer_norm", three, [1, 0, 0], ("beta",))
    assert len(compiled) == 7


def test_jax_compiles_a_decoder_once_whatever_its_parameters_tokens_and_targets_are():
    """Values of parameters, of tokens and of targets compile nothing, nor does a refusal of them;
    another set of gradients does, another number of scored targets doesn't."""
    backend, ask = JaxBackend(), plain_decoder.ask
    first, second = (plain_decoder.filled("block", seed) for seed in (1, 2))
    embed = {"token_embedding": np.ones((3, 2)), "position_embedding": np.ones((3, 2))}
    embed["tokens"] = np.array([[0, 1]])
    loss = {"logits": np.ones((1, 2, 3)), "targets": np.array([[1, 2]]), "ignore_index": -100}
    with compilations() as compiled:
        for _ in range(2):
            for given in (first, second):
                ask(backend, "block", given)
                ask(backend, "block", given, first["x"], wrt=("x", "attention.w_q"))
                ask(backend, "block", given, first["x"], wrt=("feed_forward.b_1",))
            ask(backend, "embed", embed)
            ask(backend, "embed", {**embed, "tokens": np.array([[2, 2]])})
            assert ask(backend, "embed", {**embed, "tokens": np.array([[2, 3]])}).kind
            ask(backend, "cross_entropy", loss)
            ask(backend, "cross_entropy", {**loss, "targets": np.array([[-100, 0]])})
            ask(backend, "cross_entropy", loss, 1.0)
            assert ask(backend, "cross_entropy", {**loss, "targets": np.array([[3, 0]])}).kind
    assert len(compiled) == 6


def test_jax_compiles_a_step_of_training_once():
    """Neither the first step is another one, nor the look at what is predicted at the end."""
    backend = JaxBackend()
    settings = {"learning_rate": 0.02, "beta_1": 0.9, "beta_2": 0.999, "adam_eps": 1e-8}
    settings |= {"weight_decay": 0.1, "max_norm": 0.5}
    with compilations() as compiled:
        for steps in (3, 1):
            given = plain_decoder.filled("decoder_loss", seed=steps)
            plain_decoder.ask(backend, "train", {**given, **settings, "steps": steps})
    assert len(compiled) == 1


def test_jax_reports_what_is_raised_while_tracing_as_it_is():
    """A rejection keeps its kind through the compiler, and a slip of the adapter is an error."""

    class Slipping(JaxBackend):
        def gelu(self, x):
            return self.no_such_method(x)

        def residual_add(self, x, increment):
            raise Rejected("shape-mismatch", "always")

    for upstream in (None, [1]):
        assert ask(Slipping(), "gelu", {"x": [1]}, upstream).status == "error"
        answer = ask(Slipping(), "residual_add", {"x": [1], "increment": [1]}, upstream)
        assert (answer.status, answer.kind) == ("rejected", "shape-mismatch")
