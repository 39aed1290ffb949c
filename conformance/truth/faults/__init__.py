"""The catalogue: every known mistake, as the reference with one rule done wrong.

Adding a fault takes a class of a few lines in the module of its family and nothing else::

    class SampleVariance(Fault):
        '''The variance was divided by d - 1.'''

        breaks = "LN-POPULATION-VARIANCE"
        mend = "Divide the sum of squares by d."

        def variance(self, centred): ...

Its name is the class name in words with dashes. ``conformance check`` proves that a case of the
specification rejects it in every dtype, or that the reason given why none can is true.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from functools import cache

from conformance.truth.reference import Reference


class Fault(Reference):
    """A named mistake. The docstring is the sentence that a diagnosis says."""

    #: The clause that this mistake breaks.
    breaks: str
    #: Further clauses that it breaks, each shown by a case that cites the clause and separates it.
    also: tuple[str, ...] = ()
    #: Rows of the digest (C-) and of public bug reports (BUG-) that name this mistake.
    sources: tuple[str, ...] = ()
    #: What to do about it, in one sentence.
    mend: str
    #: Why no case can show it, by dtype. The claim is proven: no case separates it there.
    unseen: Mapping[str, str] = {}
    #: A mistake of rounding: evaluated in the precision of the question, not over exact numbers.
    native: bool = False
    #: Such a mistake of which every implementation gives other values: known by the failing cases.
    scattered: bool = False
    #: It keeps something from one question to the next: what is asked again comes out otherwise.
    stateful: bool = False
    #: An answer that has nothing to do with the question: it breaks every clause alike.
    trivial: bool = False

    @classmethod
    def name(cls) -> str:
        """``SampleVariance`` is ``sample-variance``."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def says(cls) -> str:
        """The mistake in one sentence."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def clauses(cls) -> tuple[str, ...]:
        """Every clause that it breaks, the first one named first."""
        return (cls.breaks, *cls.also)


@cache
def catalogue() -> dict[str, type[Fault]]:
    """Every fault by name, in the order of the families' modules."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        importlib.import_module(f"{__name__}.{module.name}")
    return {fault.name(): fault for fault in Fault.__subclasses__()}
