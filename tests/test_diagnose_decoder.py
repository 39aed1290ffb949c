"""Whole decoders: the mistake that was planted is named, and the part it was made in."""

from __future__ import annotations

import pytest

from conformance.report.causes import root_causes
from tests.adapters.model_torch import ModelTorch
from tests.test_diagnose import COINCIDING, WRONG_ADAPTERS, failures, judged, names

pytestmark = pytest.mark.exhaustive

#: Cases of whole decoders alone: no part is asked by itself.
WHOLE = (
    "decoder/two-blocks",
    "decoder/three-blocks",
    "decoder/full-length",
    "decoder/future-tokens",
    "decoder/batch",
    "loss/decoder-ragged-batch",
    "loss/targets-outside",
    "loss/gradients-of-every-parameter",
)

PLANTED = (
    "SeesTheNextPosition",
    "DropsAfterSoftmax",
    "NeverScales",
    "Interleaves",
    "MergesByReshaping",
    "SumsToOneOverQueries",
    "RunsBothBranchesInParallel",
    "LosesTheFirstSum",
    "NormalisesEachSum",
    "SharesOneNorm",
    "StartsAtPositionOne",
    "AddsNoPositions",
    "EmbedsInTheLoop",
    "RunsBackwards",
    "RepeatsOneBlock",
    "NormalisesNothingAtTheEnd",
    "TiesTheHead",
    "GeneratesOneToken",
    "LetsTheTargetsIn",
    "DividesByAllPositions",
    "ScoresTheFirst",
    "Rolls",
    "AssignsTheRows",
    "LearnsWithTheHeadAlone",
)


def decoder(adapter):
    """A whole decoder with the part that ``adapter`` gets wrong."""
    if issubclass(adapter, ModelTorch):
        return adapter()
    return type(adapter.__name__, (adapter, ModelTorch), {})()


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_in_a_whole_decoder_is_named_first(name):
    """Nothing but the answers of whole decoders is there to tell it by."""
    _, adapter = WRONG_ADAPTERS[name]
    report = judged(decoder(adapter), *WHOLE)
    first = root_causes(report.verdicts).roots[0]
    assert first.diagnosis.fault == adapter.fault
    assert tuple(each.fault for each in first.coinciding) == COINCIDING.get(name, ())


def test_a_decoder_without_a_mistake_passes():
    """What the planted ones are built on is right, so what fails is what was planted."""
    report = judged(ModelTorch(), *WHOLE, "embedding/*", dtypes=("float64", "float32"))
    assert {verdict.verdict for verdict in report.verdicts} == {"pass"}


class DividesByOneLess(ModelTorch):
    """A layer norm with the sample variance, and all that is built on it."""

    def layer_norm(self, x, gamma, beta, *, eps):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)
        return centred / (variance + eps).sqrt() * gamma + beta


def test_a_decoder_that_fails_for_its_layer_norm_says_so():
    """Every operation above carries the mistake and the name of the part it was made in."""
    report = judged(DividesByOneLess(), "layer-norm/*-features", *WHOLE)
    failed = failures(report)
    above = [verdict for verdict in failed if verdict.operation != "layer_norm"]
    assert {verdict.operation for verdict in above} == {"decoder", "decoder_loss"}
    assert {verdict.because for verdict in above} == {"layer_norm"}
    assert {names(verdict)[0] for verdict in failed} == {"sample-variance"}
    (root,) = root_causes(report.verdicts).roots
    assert (root.worst.operation, root.diagnosis.fault) == ("layer_norm", "sample-variance")
