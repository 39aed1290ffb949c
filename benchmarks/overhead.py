"""What the kit costs, as ratios to a baseline in the same run; absolute times are the machine's.

    python benchmarks/overhead.py            all rows
    python benchmarks/overhead.py start      only those whose name has the word in it

Every figure is the median of several runs taken in turn with its baseline, A B A B …, so that a
machine whose speed drifts does not change the ratio. Nothing here passes or fails.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROUNDS = 7

CLICK = "import click, msgspec"
NUMPY = "import numpy, click, msgspec"


def command(*arguments: str) -> Callable[[], None]:
    """A ``conformance`` command as a fresh process."""
    return process(sys.executable, "-m", "conformance", *arguments)


def process(*arguments: str) -> Callable[[], None]:
    """A fresh process; its output is thrown away."""

    def run() -> None:
        subprocess.run(arguments, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

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


Row = tuple[str, float, float, float, float]


def start(out: str) -> Iterator[Row]:
    """Commands from a cold start."""
    click = process(sys.executable, "-c", CLICK)
    numpy = process(sys.executable, "-c", NUMPY)
    one = ("run", "numpy", "--select", "layer-norm/two-features", "--out", out)
    yield ("start: --help / importing click, msgspec", 1.5, *ratio(command("--help"), click))
    yield ("start: list cases, again / the same", 3.0, *ratio(command("list", "cases"), click))
    yield ("start: one case, NumPy / importing numpy too", 2.0, *ratio(command(*one), numpy))
    inside = command(*one, "--in-process")
    yield ("start: one case, in process / the same", 2.0, *ratio(inside, numpy))


def reading() -> Iterator[Row]:
    """Reading the specification again, against parsing it."""
    from conformance.layout import SPEC
    from conformance.specification import load
    from conformance.specification.files import load_specification

    again = ratio(load, lambda: load_specification(SPEC))
    yield ("reading: the specification again / parsing it", 1 / 20, *again)


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
    import pickle

    import conformance
    from conformance.backends.numpy import NumpyBackend
    from conformance.questions import question
    from conformance.runner import Options
    from conformance.specification import load

    spec, backend = load(), NumpyBackend()
    asked = []
    for case in spec.cases.values():
        for dtype in case.dtypes:
            for call in case.calls:
                each = question(case, spec.operations[case.operation], call, dtype, {})
                if each is not None:
                    asked.append((each, backend.answer(each).outputs))
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
        yield (name, budget, *medians)


def begin() -> None:
    """Start a child and end it again: what a run pays once, whatever it judges."""
    from conformance.harness.process import ChildBackend

    ChildBackend("numpy").close()


def jax_cache(out: str) -> Iterator[Row]:
    """The JAX backend with its compilations kept, against compiling everything."""
    with tempfile.TemporaryDirectory() as empty:
        run = [sys.executable, "-m", "conformance", "run", "jax", "--out", out]

        def with_cache(folder: str) -> float:
            env = {**os.environ, "XDG_CACHE_HOME": folder}
            return seconds(
                lambda: subprocess.run(run, check=False, env=env, stdout=subprocess.DEVNULL)
            )

        cold, warm = with_cache(empty), with_cache(empty)
        yield ("jax: compilations kept / compiling (one run each)", 1.0, warm / cold, warm, cold)


def main(words: list[str]) -> None:
    """Print a row for each figure."""
    with tempfile.TemporaryDirectory() as out:
        groups: dict[str, Callable[[], Iterator[Row]]] = {
            "start": lambda: start(out),
            "reading": reading,
            "verdicts": lambda: verdicts(out),
            "jax": lambda: jax_cache(out),
        }
        print(f"{'':52} {'ratio':>8} {'budget':>8} {'ours':>10} {'baseline':>10}")
        for name, rows in groups.items():
            if words and not any(word in name for word in words):
                continue
            for label, budget, value, ours, baseline in rows():
                times = f"{ours * 1e3:8.2f}ms {baseline * 1e3:8.2f}ms"
                print(f"{label:52} {value:8.3f} {budget:8.3f} {times}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
