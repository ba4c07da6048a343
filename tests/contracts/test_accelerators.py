"""Work is sent to an accelerator and never waited for, and nothing that it works on stays behind on the CPU."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import PAD
from regardant.models.heads import NextToken, WordScoresConfig
from regardant.models.vectors import Vectors

from . import pretended
from .test_heads import HEADS
from .test_models import MODELS, TARGET, VOCAB_SIZE


@pytest.fixture(scope="module")
def there():
    """Runs a function where an accelerator is pretended."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=pretended.begin) as pool:
        yield lambda *asked: pool.submit(pretended.told, *asked).result()


pytestmark = pytest.mark.xdist_group("accelerators")  # one process makes what all tests share

RECURRENT = ("luong", "bahdanau", "sutskever", "cho", "one to one", "going on, recurrent")
"""No pretended device has their cells; and encoders that pack what they read need the lengths on the CPU."""

NAMES = [name for name in MODELS if not any(kind in name for kind in RECURRENT) and not name.endswith(" going on")]
"""A mechanism goes on with a text as it writes a target, and asks a source as it reads one; reading decodes no step."""


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(" asking")])
def test_a_training_step_waits_for_nothing(there, name):
    assert there(pretended.train, name) == {pretended.NAME}


@pytest.mark.parametrize("head", HEADS)
def test_a_training_step_of_a_head_waits_for_nothing(there, head):
    assert there(pretended.train_head, head) == pretended.NAME


def test_a_training_step_of_two_encoders_waits_for_nothing(there):
    assert there(pretended.train_pairs) == pretended.NAME


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(" reading")])
def test_a_decoding_step_waits_for_nothing(there, name):
    sizes = [(3, pretended.BEAM_SIZE, VOCAB_SIZE), (2, pretended.BEAM_SIZE, VOCAB_SIZE)]
    assert there(pretended.decode, name) == [(pretended.NAME, size) for size in sizes]


def test_who_waits_is_refused(there):
    assert there(pretended.refused) == ["item", "list", "nonzero", "mask", "bool", "mixed"]


@pytest.mark.parametrize("z_loss", [0.0, 0.1])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_without_waiting_padding_neither_counts_nor_teaches(label_smoothing, z_loss):
    torch.manual_seed(0)
    words = WordScoresConfig(bias=True, scale=0.5, absent=(1,))
    head = NextToken(8, VOCAB_SIZE, label_smoothing, z_loss, words).double()
    torch.nn.init.normal_(head.bias)
    vectors, targets = torch.randn(3, 6, 8, dtype=torch.float64, requires_grad=True), TARGET[:, 1:]
    waited = head.loss(Vectors(vectors), targets)
    sent = head.loss_without_waiting(head.read(vectors).flatten(0, 1), targets.flatten())
    assert_close(sent, waited)
    assert int(sent.count) == (targets != PAD).sum()
    of = (vectors, head.weight, head.bias)
    assert_close(torch.autograd.grad(sent.total, of), torch.autograd.grad(waited.total, of))
