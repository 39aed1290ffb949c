"""``fault:NAME`` as a backend: the reference with one rule wrong.

It answers over doubles; a mistake of rounding answers in the precision of the question.
"""

from __future__ import annotations

import numpy as np

from conformance.errors import Rejected, UsageError
from conformance.model import Answer, Description, Question
from conformance.specification import load
from conformance.truth.arithmetic.domains import Domain, Doubles
from conformance.truth.arithmetic.native import Native
from conformance.truth.arithmetic.tape import Tape, Whole
from conformance.truth.effects.misread import question_as_read
from conformance.truth.faults import Fault, catalogue
from conformance.truth.proof.evaluate import Impossible, evaluate_question


class FaultBackend:
    """Answers every question as an implementation with one known mistake would."""

    def __init__(self, name: str) -> None:
        """``name`` is that of a fault, without the prefix. Raises UsageError for any other."""
        faults = catalogue()
        if name not in faults:
            from difflib import get_close_matches

            near = get_close_matches(name, faults, n=3)
            offer = f"did you mean {', '.join(near)}? " if near else ""
            hint = f"{offer}`conformance list faults` shows all"
            raise UsageError(f"there is no fault {name!r}", hint)
        self.name = f"fault:{name}"
        self._fault: type[Fault] = faults[name]
        self._reference = self._fault()  # one for all questions: a fault may remember the last one

    def describe(self) -> Description:
        """The fault and its sentence, where other backends name versions."""
        return Description(
            name=self.name,
            versions={"fault": self._fault.says(), "breaks": self._fault.breaks},
            operations=tuple(load().operations),
        )

    def answer(self, question: Question) -> Answer:
        """The answer, rounded to the dtype of the question if it isn't computed in it."""
        domain: Domain = Native(question.dtype) if self._fault.native else Doubles()
        try:
            with np.errstate(all="ignore"):
                asked = question_as_read(self._reference, question)
                found = evaluate_question(self._reference, Tape(domain, remembers=False), asked)
        except Rejected as rejected:
            return Answer(status="rejected", kind=rejected.kind, message=rejected.message)
        except Impossible as impossible:
            return Answer(status="rejected", message=str(impossible))
        with np.errstate(all="ignore"):
            outputs = {
                name: node.numbers if isinstance(node, Whole) else node.value.astype(question.dtype)
                for name, node in found.items()
            }
        return Answer(outputs=outputs)
