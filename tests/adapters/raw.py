"""Backends without ``Adapter``, named by their vice: ``answer`` gives back what it should not."""

from __future__ import annotations

from conformance import Answer, Description


class Unspeakable(Exception):
    """An exception that can't be shown."""

    def __str__(self):
        raise RuntimeError("not even this")


class Raw:
    """A backend without ``Adapter``: ``answer`` returns whatever a subclass says."""

    name = "raw"

    def describe(self):
        return Description(name="raw")

    def answer(self, question):
        return self.garbage(question)


class AnswersNone(Raw):
    def garbage(self, question):
        return None


class AnswersADict(Raw):
    def garbage(self, question):
        return {"y": question.arguments["x"]}


class AnswersWithLists(Raw):
    def garbage(self, question):
        return Answer(outputs={"y": [1.0, 2.0]})


class AnswersWithoutOutputs(Raw):
    def garbage(self, question):
        return Answer(outputs=None)


class AnswersWithAnUnknownStatus(Raw):
    def garbage(self, question):
        return Answer(status="splendid")


class AnswersWithAListForStatus(Raw):
    def garbage(self, question):
        return Answer(status=["outputs"])


class AnswersWithoutText(Raw):
    def garbage(self, question):
        return Answer(status="error", message=object(), kind=object())


class AnswersWithNothing(Raw):
    def garbage(self, question):
        return Answer()


class RaisesInAnswer(Raw):
    def garbage(self, question):
        raise Unspeakable


class ExitsInAnswer(Raw):
    def garbage(self, question):
        raise SystemExit(0)


class TakesItsQuestionApart(Raw):
    def garbage(self, question):
        question.arguments.clear()
        return Answer()


class ReplacesItsArguments(Raw):
    def garbage(self, question):
        question.arguments["x"] = 5
        return Answer()
