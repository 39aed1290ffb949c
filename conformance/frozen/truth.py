"""The truth of a folder, read a family at a time."""

from __future__ import annotations

from pathlib import Path

from conformance.errors import Problem, SpecificationError
from conformance.frozen.files import FrozenFamily, freeze_again, read_family
from conformance.frozen.proven import CaseTruth, thaw
from conformance.model import Case


class Truth:
    """The frozen truth of a folder, read a family at a time when first asked for."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is ``spec/truth`` or a copy of it."""
        self.folder = folder
        self._families: dict[str, FrozenFamily] = {}
        # A case is judged in one dtype after another.
        self._latest: tuple[str, CaseTruth] = ("", {})

    def family(self, name: str) -> FrozenFamily:
        """The frozen family ``name``; empty where it was never frozen.

        Raises SpecificationError where the file can't be read as truth.
        """
        if name not in self._families:
            self._families[name] = read_family(self.folder / f"{name}.json")
        return self._families[name]

    def of(self, case: Case) -> CaseTruth:
        """The proven values of ``case``.

        Raises SpecificationError where there are none, or where they are of another question.
        """
        if self._latest[0] != case.id:
            self._latest = (case.id, self._found(case))
        return self._latest[1]

    # ------------------------------------------------------------------------------------ inside

    def _found(self, case: Case) -> CaseTruth:
        frozen = self.family(case.family).cases.get(case.id)
        if frozen is None:
            raise self._stale(case, "no truth is frozen for this case")
        if frozen.digest != case.question_digest:
            raise self._stale(case, "what it asks has changed since its truth was frozen")
        if not set(case.dtypes) <= frozen.bounds.keys():
            raise self._stale(case, "its frozen bounds are of other dtypes")
        try:
            return thaw(frozen)
        except (ArithmeticError, LookupError, ValueError):  # no freeze has written it so
            raise self._stale(case, "its frozen values and bounds do not fit together") from None

    def _stale(self, case: Case, message: str) -> SpecificationError:
        message = f"{message}: {freeze_again(self.folder.parent)}"
        return SpecificationError([Problem(case.file, case.line, case.id, message)])
