"""What the kit costs, as ratios to a baseline in the same run; absolute times are the machine's.

    python benchmarks/overhead.py            all rows
    python benchmarks/overhead.py start      only those whose name has the word in it

Every figure is the median of several runs taken in turn with its baseline, A B A B …, so that a
machine whose speed drifts does not change the ratio. Every process may keep its bytecode, as the
libraries of the baselines have theirs since they were installed. Nothing here passes or fails.
"""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from conformance import Question

ROUNDS = 7

#: Of every process that is measured.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

CLICK = "import click, msgspec"
NUMPY = "import numpy, click, msgspec"


def command(*arguments: str) -> Callable[[], None]:
    """A ``conformance`` command as a fresh process."""
    return process(sys.executable, "-m", "conformance", *arguments)


def process(*arguments: str) -> Callable[[], None]:
    """A fresh process; its output is thrown away."""

    def run() -> None:
        nowhere = subprocess.DEVNULL
        subprocess.run(arguments, check=False, env=ENVIRONMENT, stdout=nowhere, stderr=nowhere)

    return run


def seconds(action: Callable[[], object]) -> float:
    """The wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def ratio(ours: Callable[[], object], baseline: Callable[[], object]) -> tuple[float, float, float]:
    """Median ratio, and both medians in seconds, after one uncounted round."""
    ours(), baseline()
    pairs = [(seconds(ours), seconds(baseline)) for _ in range(ROUNDS)]
    ratios = [a / b for a, b in pairs]
    first, second = zip(*pairs, strict=True)
    return statistics.median(ratios), statistics.median(first), statistics.median(second)


class Row(NamedTuple):
    """A figure beside its budget; ``ours`` and ``baseline`` are seconds, unless ``counted``."""

    label: str
    budget: float
    ratio: float
    ours: float
    baseline: float
    counted: bool = False


def start(out: str) -> Iterator[Row]:
    """Commands from a cold start."""
    click = process(sys.executable, "-c", CLICK)
    numpy = process(sys.executable, "-c", NUMPY)
    one = ("run", "numpy", "--select", "layer-norm/two-features", "--out", out)
    yield Row("start: --help / importing click, msgspec", 1.5, *ratio(command("--help"), click))
    yield Row("start: list cases, again / the same", 3.0, *ratio(command("list", "cases"), click))
    yield Row("start: one case, NumPy / importing numpy too", 2.0, *ratio(command(*one), numpy))
    inside = command(*one, "--in-process")
    yield Row("start: one case, in process / the same", 2.0, *ratio(inside, numpy))


def reading() -> Iterator[Row]:
    """Reading the specification again, against parsing it."""
    from conformance.layout import SPEC
    from conformance.specification import load
    from conformance.specification.files import load_specification

    again = ratio(load, lambda: load_specification(SPEC))
    yield Row("reading: the specification again / parsing it", 1 / 20, *again)


PYTEST = """
import pickle
import numpy as np
import pytest
from conformance.backends.numpy import NumpyBackend
QUESTIONS = pickle.load(open({questions!r}, "rb"))
BACKEND = NumpyBackend()

@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_question(number):
    question, outputs = QUESTIONS[number]
    for name, value in BACKEND.answer(question).outputs.items():
        np.testing.assert_allclose(value, outputs[name], rtol=1e-3, atol=1e-3)
"""


def verdicts(out: str) -> Iterator[Row]:
    """A verdict, report included, beyond the bare call; against an item of plain pytest."""
    import conformance
    from conformance.backends.numpy import NumpyBackend
    from conformance.running.options import Options

    backend = NumpyBackend()
    asked = [(each, backend.answer(each).outputs) for each in all_questions()]
    folder = Path(out)
    questions, test = folder / "questions.pickle", folder / "test_baseline.py"
    questions.write_bytes(pickle.dumps(asked))
    test.write_text(PYTEST.format(questions=str(questions)), encoding="utf-8")
    flags = ("-q", "-p", "no:cacheprovider", f"--junitxml={folder / 'junit.xml'}")
    items = process(sys.executable, "-m", "pytest", str(test), *flags)
    single = process(sys.executable, "-m", "pytest", f"{test}::test_question[0]", *flags)

    def judged(options: Options) -> int:
        (report,) = conformance.run(["numpy"], out=folder / "reports", options=options)
        return len(report.verdicts)

    def bare() -> None:
        for each, _ in asked:
            backend.answer(each)

    count = judged(Options(in_process=True))
    for name, budget, options in (
        ("verdicts: in process / an item of pytest", 1 / 4, Options(in_process=True)),
        ("verdicts: through a child / an item of pytest", 3 / 4, Options()),
    ):
        ours, theirs = [], []
        for _ in range(ROUNDS):
            begun = 0.0 if options.in_process else seconds(begin)
            ours.append((seconds(partial(judged, options)) - begun - seconds(bare)) / count)
            theirs.append((seconds(items) - seconds(single)) / (len(asked) - 1))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        medians = (statistics.median(each) for each in (ratios, ours, theirs))
        yield Row(name, budget, *medians)


def all_questions(*patterns: str) -> Iterator[Question]:
    """What the selected cases ask; not what takes the answer to an earlier question."""
    from conformance.questions import question
    from conformance.specification import load

    spec = load()
    for case in spec.select(patterns):
        for dtype in case.dtypes:
            for call in case.calls:
                each = question(case, spec.operations[case.operation], call, dtype, {})
                if each is not None:
                    yield each


def begin() -> None:
    """Start a child and end it again: what a run pays once, whatever it judges."""
    from conformance.harness.process import ChildBackend

    ChildBackend("numpy").close()


WRONG = """
import numpy as np

from conformance.backends.numpy import NumpyBackend


class Known(NumpyBackend):
    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma + np.ones((), gamma.dtype), beta, eps=eps)

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        gamma = gamma + np.ones((), gamma.dtype)
        return super().layer_norm_vjp(upstream, x, gamma, beta, eps=eps)


class Unknown(NumpyBackend):
    def layer_norm(self, x, gamma, beta, *, eps):
        return off(super().layer_norm(x, gamma, beta, eps=eps))

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        right = super().layer_norm_vjp(upstream, x, gamma, beta, eps=eps)
        return {name: off(value) for name, value in right.items()}


def off(right):
    noise = np.sin(np.arange(right.size, dtype=right.dtype)).reshape(right.shape)
    return right * np.array(1.01, right.dtype) + noise / np.array(64, right.dtype)
"""


def diagnosis(out: str) -> Iterator[Row]:
    """Layer norm wrong in nearly every case, against a run of the same cases that passes.

    Where the mistake is known, its trial ends the search for the next failure; where it is not,
    every failure is held against the whole catalogue.
    """
    adapters = Path(out) / "wrong.py"
    adapters.write_text(WRONG, encoding="utf-8")
    passing, known, unknown = (
        command("run", backend, "--select", "layer-norm/*", "--out", out)
        for backend in ("numpy", f"{adapters}:Known", f"{adapters}:Unknown")
    )
    yield Row("diagnosis: a known mistake / a run that passes", 3.0, *ratio(known, passing))
    yield Row("diagnosis: an unknown mistake / the same", 10.0, *ratio(unknown, passing))


JAX = """
import pickle
import sys
import time
import jax
from conformance.backends.jax import JaxBackend
QUESTIONS = pickle.load(open(sys.argv[1], "rb"))
BACKEND = JaxBackend()
compiled = []

def listen(event, seconds, **about):
    if event == "/jax/core/compile/backend_compile_duration":
        compiled.append(about)

def kind(question):
    arrays = {**question.upstream, **question.arguments}
    shapes = [(n, getattr(v, "shape", v)) for n, v in sorted(arrays.items())]
    return question.operation, question.mode, question.dtype, question.wrt, tuple(shapes)

jax.monitoring.register_event_duration_secs_listener(listen)
start = time.perf_counter()
statuses = [BACKEND.answer(question).status for question in QUESTIONS]
seconds = time.perf_counter() - start
answered = [kind(q) for q, status in zip(QUESTIONS, statuses) if status == "outputs"]
print(seconds, len(compiled), len(set(answered)))
"""


def training() -> Iterator[Row]:
    """The case of the fixed batch as a question to each adapter, against its loop by itself."""
    import numpy as np

    from conformance.backends.jax import JaxBackend
    from conformance.backends.numpy import NumpyBackend
    from conformance.backends.torch import TorchBackend

    asked = next(all_questions("training/fixed-batch"))
    for backend in (NumpyBackend(), TorchBackend(), JaxBackend()):
        native = {
            name: {key: backend.to_native(item) for key, item in given.items()}
            if isinstance(given, dict)
            else backend.to_native(given)
            if isinstance(given, np.ndarray)
            else given
            for name, given in asked.arguments.items()
        }
        bare = partial(backend.evaluate, "train", native)
        label = f"training: answering 120 steps, {backend.name} / the bare loop"
        yield Row(label, 1.25, *ratio(partial(backend.answer, asked), bare))


def jax_compilations(out: str) -> Iterator[Row]:
    """JAX on the questions of layer norm: compiled and eager, and again with what was kept."""
    folder = Path(out)
    script, questions = folder / "compilations.py", folder / "layer_norm.pickle"
    script.write_text(JAX, encoding="utf-8")
    questions.write_bytes(pickle.dumps(list(all_questions("layer-norm/*"))))

    def answered(cache: str, **more: str) -> list[float]:
        """Seconds, compilations, and kinds of questions answered, in a process of its own."""
        told = subprocess.run(
            (sys.executable, str(script), str(questions)),
            check=True,
            env={**ENVIRONMENT, "XDG_CACHE_HOME": str(folder / cache), **more},
            stdout=subprocess.PIPE,
        )
        return [float(each) for each in told.stdout.split()]

    eager, eagerly, _ = answered("eager", JAX_DISABLE_JIT="1")
    cold, compiled, kinds = answered("compiled")
    warm, _, _ = answered("compiled")
    yield Row("jax: compiling / eager (one run each)", 1.0, cold / eager, cold, eager)
    yield Row("jax: compilations kept / compiling (one run each)", 1.0, warm / cold, warm, cold)
    label = "jax: compilations / operations, shapes and dtypes"
    yield Row(label, 1.0, compiled / kinds, compiled, kinds, counted=True)
    label = "jax: compilations / those of eager"
    yield Row(label, 1.0, compiled / eagerly, compiled, eagerly, counted=True)


def main(words: list[str]) -> None:
    """Print a row for each figure."""
    with tempfile.TemporaryDirectory() as out:
        groups: dict[str, Callable[[], Iterator[Row]]] = {
            "start": lambda: start(out),
            "reading": reading,
            "verdicts": lambda: verdicts(out),
            "diagnosis": lambda: diagnosis(out),
            "training": training,
            "jax": lambda: jax_compilations(out),
        }
        print(f"{'':52} {'ratio':>8} {'budget':>8} {'ours':>10} {'baseline':>10}")
        for name, rows in groups.items():
            if words and not any(word in name for word in words):
                continue
            for row in rows():
                told = f"{row.label:52} {row.ratio:8.3f} {row.budget:8.3f}"
                both = row.ours, row.baseline
                shown = [f"{x:10.0f}" if row.counted else f"{x * 1e3:8.2f}ms" for x in both]
                print(told, *shown, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
