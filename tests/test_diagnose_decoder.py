"""Whole decoders: the mistake that was planted is named, and the part it was made in."""

from __future__ import annotations

import pytest

from conformance.report.causes import root_causes
from tests import test_weak_training as broken
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


#: Models that train, and the mistakes that each has: what is computed, and what is registered.
TRAINED = {
    broken.DetachesBeforeTheHead: ("head-input-detached",),
    broken.AttendsWithoutGraph: ("attention-detached",),
    broken.FeedsWithoutGraph: ("branch-detached",),
    broken.FreezesItsTables: ("token-table-detached",),
    broken.HidesItsBlocks: ("blocks-in-plain-list",),
    broken.HoldsTheHead: ("only-head-held",),
    broken.HoldsNoTables: ("embeddings-not-held",),
    broken.EndsWithoutNorm: ("final-norm-forgotten",),
    broken.SeesEverything: ("mask-forgotten",),
    broken.RepeatsABlock: ("first-block-repeated", "block-shared"),
    broken.ReplacesItsHead: ("head-not-held",),
    broken.ShiftsItsTargets: ("targets-shifted-inside",),
    broken.SparesRowZero: ("first-row-frozen",),
}


@pytest.mark.parametrize("model", TRAINED)
def test_a_mistake_in_a_model_that_trains_is_named(model):
    """In its training too, where few mistakes of the parts are tried: its decoder told them."""
    trained = ("training/two-blocks", "training/used-row-zero", "model/registered-2562")
    report = judged(model(), *WHOLE, *trained, "embedding/gradients*")
    roots = root_causes(report.verdicts).roots
    assert tuple(root.diagnosis.fault for root in roots) == TRAINED[model]
    assert all(verdict.diagnosis for verdict in failures(report))
    assert "train" in {verdict.operation for verdict in failures(report)}


def test_every_broken_model_that_trains_is_diagnosed():
    """None that the weak evidence lets pass is left out above."""
    assert {*broken.FITTING, *broken.NOT_FITTING, broken.SparesRowZero} == set(TRAINED)
