"""Unsupported is said of an operation, mode and dtype, never of single questions."""

from __future__ import annotations

import conformance
from conformance.backends.numpy import NumpyBackend
from conformance.judging.support import hold_to_support
from conformance.model import Answer, Question, Verdict
from conformance.report.text import summary_lines


class Picky(NumpyBackend):
    """Answers what is easy, and calls the rest unsupported."""

    name = "picky"

    def answer(self, question: Question) -> Answer:
        if question.operation == "gelu" and (abs(question.arguments["x"]) > 3).any():
            return Answer(status="unsupported")
        if question.operation == "residual_add":
            return Answer(status="unsupported", message="not yet")
        return super().answer(question)


def test_a_backend_that_picks_its_questions_fails_them():
    """Unsupported beside answered questions of the same kind is a failure, and counted as one."""
    (report,) = conformance.run([Picky()], select=["gelu/", "residual/"])
    gelu = [v for v in report.verdicts if v.operation == "gelu" and v.mode == "evaluate"]
    assert {v.verdict for v in gelu} == {"pass", "fail"}
    (message,) = {v.message for v in gelu if v.verdict == "fail" and v.dtype == "float64"}
    assert message == (
        "said unsupported, though other questions of gelu in evaluate and float64 were answered"
    )
    assert report.totals["fail"] == sum(v.verdict == "fail" for v in report.verdicts) > 0


def test_an_operation_that_is_not_there_is_unsupported():
    """Where no question of a kind is answered, all of them are unsupported."""
    (report,) = conformance.run([Picky()], select=["residual/"])
    assert {v.verdict for v in report.verdicts} == {"unsupported"}


def test_a_method_that_nearly_has_the_name_of_an_operation_is_noted():
    """It is never called, and what is inherited passes in its place."""

    class Mine(NumpyBackend):
        def layernorm(self, x, gamma, beta, *, eps):
            return 0 * x

        def rows(self, x):
            return x

    (report,) = conformance.run([Mine()], select=["layer-norm/affine"])
    assert report.totals["fail"] == 0
    note = "layernorm is no operation and was not called; there is layer_norm"
    assert report.notes == (note,)
    assert f"note: {note}" in summary_lines(report)


def test_a_dtype_that_the_kit_does_not_ask_in_is_noted():
    """A slip of the pen in a list of dtypes would leave questions unasked in silence."""

    class Mine(NumpyBackend):
        dtypes = ("float64", "f32")

    (report,) = conformance.run([Mine()], select=["gelu/pair"])
    assert {v.dtype: v.verdict for v in report.verdicts} == {
        "float64": "pass",
        "float32": "unsupported",
    }
    assert report.notes == ("it was not asked in f32: the kit asks in float64 and float32",)


def test_what_says_that_it_is_not_implemented_is_unsupported():
    """The usual stub is no refusal of valid arguments, unless other questions were answered."""

    class Stub(NumpyBackend):
        def softmax(self, x):
            raise NotImplementedError

        def gelu(self, x):
            if (abs(x) > 3).any():
                raise NotImplementedError("large numbers")
            return super().gelu(x)

    (report,) = conformance.run([Stub()], select=["softmax/quarters", "gelu/far", "gelu/pair"])
    found = {(v.operation, v.verdict) for v in report.verdicts if v.mode == "evaluate"}
    assert found == {("softmax", "unsupported"), ("gelu", "fail"), ("gelu", "pass")}


def test_a_crash_is_no_answer():
    """What is not there stays unsupported where the process died before it could say so."""

    def verdict(case, name):
        return Verdict(
            case=case, operation="gelu", mode="evaluate", dtype="float64", verdict=name, clauses=()
        )

    for name in ("crash", "timeout"):
        verdicts = [verdict("gelu/pair", name), verdict("gelu/far", "unsupported")]
        assert hold_to_support(verdicts) == verdicts
    held = hold_to_support([verdict("gelu/pair", "error"), verdict("gelu/far", "unsupported")])
    assert [each.verdict for each in held] == ["error", "fail"]


def test_a_fault_has_no_method_that_is_none():
    """``fault:NAME`` answers every operation, and nothing beside them is noted."""
    (report,) = conformance.run(["fault:tanh-gelu"], select=["gelu/pair"])
    assert report.notes == ()
    assert "layer_norm" in report.backend.operations


def test_a_gradient_without_its_operation_is_told_as_one():
    """The method that is missing is the operation's; its gradient is there."""

    class Mine(conformance.Adapter):
        def residual_add_vjp(self, upstream, x, increment):
            return {"x": upstream, "increment": upstream}

    (report,) = conformance.run([Mine()], select=["residual/*"], dtypes=["float64"])
    told = {v.message for v in report.verdicts if v.mode == "vjp"}
    assert told == {"no method for residual_add"}
