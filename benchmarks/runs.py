"""What whole runs cost: NumPy's beside its imports, and three backends beside what they load.

    python benchmarks/runs.py

One run each, for they take minutes; the ratios are to processes started in the same minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from overhead import ENVIRONMENT, NUMPY, process, ratio, seconds

#: What a run of each backend loads beside the kit.
IMPORTS = {"numpy": NUMPY, "torch": "import torch", "jax": "import jax, jax.numpy"}


def run(out: str, cache: Path, *arguments: str) -> float:
    """The seconds of ``conformance run``, with the user's cache in the folder ``cache``."""
    ENVIRONMENT["XDG_CACHE_HOME"] = str(cache)
    arguments = ("run", *arguments, "--jobs", "2", "--out", out)
    return seconds(process(sys.executable, "-m", "conformance", *arguments))


def peak(*arguments: str) -> float:
    """The largest resident memory of a ``conformance`` command and of its children, in MiB."""
    nowhere = subprocess.DEVNULL
    run = subprocess.Popen(
        (sys.executable, "-m", "conformance", *arguments),
        env=ENVIRONMENT, stdout=nowhere, stderr=nowhere,
    )  # fmt: skip
    _, _, usage = os.wait4(run.pid, 0)
    return usage.ru_maxrss / 1024


def but_training() -> list[str]:
    """Options that select every family but the one that trains models for many steps."""
    from conformance.specification import load

    families = {case.family for case in load().cases.values()} - {"training"}
    return [part for family in sorted(families) for part in ("--select", f"{family}/*")]


def main() -> None:
    """Print a line for each figure."""
    with tempfile.TemporaryDirectory() as out:
        cache = Path(out) / "cache"
        run(out, cache, "numpy")  # the specification is parsed once
        baseline = process(sys.executable, "-c", NUMPY)
        command = (sys.executable, "-m", "conformance", "run", "numpy", "--out", out)
        for label, more in (
            ("NumPy's whole run", ()),
            ("the same through two children", ("--jobs", "2")),
            ("the same but the trainings", but_training()),
        ):
            found, ours, theirs = ratio(process(*command, *more), baseline)
            print(f"{label} / importing numpy, click, msgspec: {found:.1f} (budget 10)")
            print(f"    {ours:.2f} s and {theirs:.2f} s")

        whole = ("run", "numpy", "--out", out)
        few, many = peak(*whole, "--dtype", "float64"), peak(*whole)
        print(f"memory of NumPy's run of twice as many questions: {many / few:.2f} (budget 1)")
        print(f"    {many:.0f} MiB and {few:.0f} MiB")

        imports = sum(seconds(process(sys.executable, "-c", code)) for code in IMPORTS.values())
        for label, selected in (
            ("all but the trainings", but_training()),
            ("the trainings", ["--select", "training/*"]),
        ):
            cold = run(out, cache, *IMPORTS, *selected)
            warm = run(out, cache, *IMPORTS, *selected)
            share = (cold - warm + imports) / cold
            print(f"three backends, {label}, JAX compiling everything: {cold:.1f} s")
            print(
                f"    again: {warm:.1f} s; imports and compilations: {share:.0%} of the first run"
            )


if __name__ == "__main__":
    main()
