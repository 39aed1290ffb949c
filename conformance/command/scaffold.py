"""Writes the first adapter of an implementation: every operation of the catalogue, one done."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from conformance.errors import UsageError
from conformance.model import ArgumentRule, Operation, OutputRule

#: Columns for text in a comment, its indentation left out.
_WIDTH = 86

_HEAD = '''"""{title}: an adapter for decoder-conformance.

Judge it:             conformance run {command}
One operation:        conformance run {command} --select residual
What a case asks:     conformance show residual/rank-four

Each operation is a method, in the arrays of your library. A method that is not there is
unsupported, not wrong: take the comment signs from the next one when you get to it. A weight is
always [in, out]; "..." stands for any number of leading axes, none included.
"""

{imports}


class {name}({base}):
    name = "{label}"
'''

_CONVERSIONS = '''
    def to_native(self, array):
        """A NumPy array (float64, float32 or int64) as an array of your library."""
        return array

    def to_numpy(self, native):
        """An array of your library as a NumPy array, in the dtype it has."""
        return native
'''

_RESIDUAL = '''
    def residual_add(self, x, increment):
        """{summary}

        {shapes}
        """
        if x.shape != increment.shape:  # nothing is broadcast
            raise conformance.Rejected("shape-mismatch", f"{{x.shape}} and {{increment.shape}}")
        return x + increment

    def residual_add_vjp(self, upstream, x, increment):
        """Gradients by the name of the argument; upstream is the gradient of y."""
        self.residual_add(x, increment)  # refuses here what it refuses there
        return {{"x": upstream.copy(), "increment": upstream.copy()}}
'''

_INHERITED = '''
    # Everything is inherited from the bundled backend; override what is yours. What uses an
    # operation that you override, uses yours.

    def residual_add(self, x, increment):
        """{summary}

        {shapes}
        """
        return super().residual_add(x, increment)
'''

_BASES = {"numpy": "NumpyBackend", "torch": "TorchBackend", "jax": "JaxBackend"}


def write_adapter(path: Path, operations: Mapping[str, Operation], base: str | None = None) -> None:
    """Write an adapter with the operations of the specification to the new file ``path``.

    ``base`` is a bundled backend to derive from. Raises UsageError where the file exists, is no
    ``.py``, or can't be written.
    """
    if path.suffix != ".py":
        raise UsageError(f"{path} is no Python file", "give a name that ends in .py")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(adapter_text(path, operations, base))
    except FileExistsError:
        raise UsageError(f"{path} exists", "name a new file, or move that one") from None
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None


def adapter_text(path: Path, operations: Mapping[str, Operation], base: str | None) -> str:
    """The text of an adapter file."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", path.stem) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words) or "MyBackend"
    if name[0].isdigit() or name in _BASES.values():
        name = f"My{name}"
    imports = ["import conformance"]
    if base is not None:
        imports = [f"from conformance.backends.{base} import {_BASES[base]}"]
    text = _HEAD.format(
        title=path.stem,
        command=shlex.quote(f"./{path.name}"),
        imports="\n".join(imports),
        name=name,
        base=_BASES[base] if base else "conformance.Adapter",
        label=path.stem,
    )
    done = operations["residual_add"]
    shapes = _shapes(done)
    if base is None:
        text += _CONVERSIONS + _RESIDUAL.format(summary=f"{done.summary}.", shapes=shapes)
    else:
        text += _INHERITED.format(summary=f"{done.summary}.", shapes=shapes)
    for operation in operations.values():
        if operation.name != done.name:
            text += _commented(operation)
    return text


def _commented(operation: Operation) -> str:
    """A method as comments: its signature, its formula, its shapes, what it rejects and returns."""
    arguments = [_parameter(name, rule) for name, rule in operation.arguments.items()]
    keywords = ["*", *operation.attributes] if operation.attributes else []
    names = (*arguments, *keywords)
    first, *more = textwrap.wrap(f"{operation.summary}.", _WIDTH)
    lines = [
        "",
        *_signature(operation.name, ("self", *names)),
        f'    """{first}',
        *(f"    {line}" for line in more),
        "",
        *(
            f"    {line}"
            for line in _wrapped(re.split(r"(?<=[\])]), ", _shapes(operation)), _WIDTH)
        ),
        *(f"    {line}" for line in _parameters(operation)),
        *(["    in the dtype self.run_dtype"] if _gives_alone(operation) else []),
        *(f"    Rejected({kind!r}): {text}" for kind, text in operation.rejects.items()),
        '    """',
        *(f"    {line}" for line in _results(operation)),
    ]
    if operation.differentiable:
        lines += [
            "",
            *_signature(f"{operation.name}_vjp", ("self", "upstream", *names)),
            *(f"    {line}" for line in _gradients(operation)),
        ]
    return "\n" + "".join(f"    # {line}".rstrip() + "\n" for line in lines[1:])


def _signature(name: str, parameters: Iterable[str]) -> Iterator[str]:
    """The head of a method, over several lines where it is too wide for one."""
    told = ", ".join(parameters)
    if len(name) + len(told) <= _WIDTH:
        yield f"def {name}({told}):"
        return
    yield f"def {name}("
    yield from (f"    {line}" for line in textwrap.wrap(told, _WIDTH - 4))
    yield "):"


def _results(operation: Operation) -> Iterator[str]:
    """What a method returns that has more than one result; of those by name, one stands for all."""
    if len(operation.outputs) == 1 and not any(rule.named for rule in operation.outputs.values()):
        return
    yield "return {"
    for name, rule in operation.outputs.items():
        result = '{"name": ...}' if rule.named else "..."
        yield f'    "{name}": {result},'
    yield "}"


def _gives_alone(operation: Operation) -> bool:
    """Whether no array that is given has the dtype of the results."""
    real = any(rule.kind == "real" for rule in operation.outputs.values())
    return real and not operation.arguments


def _parameter(name: str, rule: ArgumentRule) -> str:
    return f"{name}=None" if rule.optional else name


def _shapes(operation: Operation) -> str:
    given = ", ".join(_shape(name, rule) for name, rule in operation.arguments.items())
    gives = ", ".join(_result(name, rule) for name, rule in operation.outputs.items())
    return f"{given} -> {gives}" if given else f"-> {gives}"


def _result(name: str, rule: OutputRule) -> str:
    kind = f" {rule.dtype}" if rule.kind == "whole" else ""
    return f"{name}{' by name:' if rule.named else ''}{kind} {rule.shape}"


def _shape(name: str, rule: ArgumentRule) -> str:
    if rule.kind == "parameters":
        return f"{name} (a dict)"
    return f"{name} int64 {rule.shape}" if rule.kind == "index" else f"{name} {rule.shape}"


def _parameters(operation: Operation) -> Iterator[str]:
    """The names and shapes in a dict of parameters, a few a line."""
    for argument, rule in operation.arguments.items():
        if rule.shapes:
            repeated = any(name.startswith("blocks.K.") for name in rule.shapes)
            yield f"{argument} by name{', K = 0, 1, … for each block' if repeated else ''}:"
            texts = [f"{name} {shape}" for name, shape in rule.shapes.items()]
            yield from (f"    {line}" for line in _wrapped(texts, _WIDTH - 4))


def _wrapped(texts: Iterable[str], width: int) -> Iterator[str]:
    """Texts with commas between them, none broken over two lines."""
    kept = (text.replace(" ", "\0") for text in texts)
    joined = ", ".join(kept)
    for line in textwrap.wrap(joined, width, break_on_hyphens=False, break_long_words=False):
        yield line.replace("\0", " ")


def _gradients(operation: Operation) -> Iterator[str]:
    """What a gradient written by hand returns."""
    entries = []
    for name in operation.differentiable:
        if operation.arguments[name].kind == "parameters":
            yield "# each parameter has a gradient of its shape under its own name"
            each = f"name: ... for name in {name}"
            entries.append(f"**{{{each}}}" if len(operation.differentiable) > 1 else each)
        else:
            entries.append(f"{name!r}: ...")
    yield f"return {{{', '.join(entries)}}}"
