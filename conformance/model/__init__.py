"""The nouns: plain, frozen data that every room of the house hands to the next.

Nothing here computes or touches a file. NumPy is named in annotations only, so importing this
package stays cheap. The glossary is in ``README.md``; the words are the same everywhere.
"""

from conformance.model.cases import Call, Case, CentralDifference, Clause, Erratum, Fact
from conformance.model.exchange import Answer, Backend, Description, Question, Status
from conformance.model.expectations import (
    Combination,
    Differ,
    Drawn,
    Expectation,
    Greater,
    Less,
    MeanSquare,
    Rejection,
    Relation,
    Relations,
    Same,
    Undefined,
    Values,
)
from conformance.model.operations import ArgumentRule, Layout, Mode, Operation, OutputRule
from conformance.model.tensors import (
    MOST_NUMBERS,
    FromOutput,
    Given,
    Number,
    Parameters,
    Tensor,
    TensorDtype,
)
from conformance.model.verdicts import VERDICTS, Diagnosis, Report, Verdict, VerdictName

__all__ = [
    "MOST_NUMBERS",
    "VERDICTS",
    "Answer",
    "ArgumentRule",
    "Backend",
    "Call",
    "Case",
    "CentralDifference",
    "Clause",
    "Combination",
    "Description",
    "Diagnosis",
    "Differ",
    "Drawn",
    "Erratum",
    "Expectation",
    "Fact",
    "FromOutput",
    "Given",
    "Greater",
    "Layout",
    "Less",
    "MeanSquare",
    "Mode",
    "Number",
    "Operation",
    "OutputRule",
    "Parameters",
    "Question",
    "Rejection",
    "Relation",
    "Relations",
    "Report",
    "Same",
    "Status",
    "Tensor",
    "TensorDtype",
    "Undefined",
    "Values",
    "Verdict",
    "VerdictName",
]
