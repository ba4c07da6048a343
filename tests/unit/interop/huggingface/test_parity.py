"""An imported model computes what transformers computes with the same weights."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, PAD, SOS
from tests.unit.interop.huggingface.names import LETTERS, NAMES, SENTENCES

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

EXACT = {"atol": 1e-5, "rtol": 1e-5}


def of_their_words(pair, logits):
    """Our scores in the order of the checkpoint's ids."""
    rows = pair.run.trained.model.head.weight.new_tensor(
        [-1 if row is None else row for row in tokenizer_of(pair).rows], dtype=torch.int64
    )
    ours = torch.empty(*logits.shape[:-1], int(rows.max()) + 1)
    ours[..., rows[rows >= 0]] = logits[..., rows >= 0]
    return ours


def tokenizer_of(pair):
    trained = pair.run.trained
    if hasattr(trained, "codec"):
        return trained.codec.tokenizer
    return trained.generator.tokenizer if hasattr(trained, "generator") else trained.tokenizer


@pytest.mark.parametrize("name", ["bert", "roberta", "bert_classes", "bert_vectors"])
def test_an_encoder_reads_a_padded_batch_as_transformers_does(pair, name):
    both = pair(name)
    texts = LETTERS if name == "roberta" else SENTENCES
    batch = both.tokenizer(texts, return_tensors="pt", padding=True)
    trained = both.run.trained
    encoded = trained.codec.encode(texts)
    rows = tokenizer_of(both).rows
    for ids, one in zip(batch["input_ids"].tolist(), encoded, strict=True):
        assert [rows[token] for token in one] == ids[: len(one)]
    with torch.inference_mode():
        theirs = both.theirs(**batch)
        vectors = trained.model.vectors(trained.codec.collate(encoded))
        ours = trained.model.head.scores(vectors)
    real = batch["attention_mask"].bool()
    if name == "bert_classes":
        assert_close(ours, theirs.logits, **EXACT)
    elif name == "bert_vectors":
        assert_close(vectors.values[real], theirs.last_hidden_state[real], **EXACT)
        mean = (theirs.last_hidden_state * real[..., None]).sum(1) / real.sum(1, keepdim=True)
        assert_close(ours, torch.nn.functional.normalize(mean, dim=-1), **EXACT)
        assert_close(trained.encode(texts), ours, **EXACT)
    else:
        assert_close(of_their_words(both, ours)[real], theirs.logits[real], **EXACT)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_blanks_are_filled_in_as_transformers_does(pair, name):
    both = pair(name)
    batch = both.tokenizer(f"the cat {both.tokenizer.mask_token} a mat", return_tensors="pt")
    at = (batch["input_ids"][0] == both.tokenizer.mask_token_id).nonzero().item()
    with torch.inference_mode():
        scores = both.theirs(**batch).logits[0, at]
    scores = scores.clone()
    scores[[row for row in tokenizer_of(both).rows[:5] if row is not None]] = -torch.inf
    best = scores.softmax(-1).topk(5)
    (blank,) = both.run.predict(["the cat [MASK] a mat"])[0].details["blanks"]
    assert [one["probability"] for one in blank] == pytest.approx(best.values.tolist(), abs=1e-5)
    pieces = [tokenizer_of(both).decode([tokenizer_of(both).rows.index(row)]) for row in best.indices.tolist()]
    assert [one["token"] for one in blank] == pieces


@pytest.mark.parametrize("name", ["gpt2", "llama", "llama_tied"])
def test_a_language_model_scores_a_text_as_transformers_does(pair, name):
    both = pair(name)
    ids = both.tokenizer(LETTERS[0], return_tensors="pt")["input_ids"]
    tokenizer = tokenizer_of(both)
    before, _ = tokenizer.frame
    ours = torch.tensor([[*before, *tokenizer.encode(LETTERS[0])]])
    with torch.inference_mode():
        scores = both.run.trained.model.scores(ours)
        theirs = both.theirs(ids).logits
    assert [tokenizer.rows[token] for token in ours[0]] == ids[0].tolist()
    assert_close(of_their_words(both, scores), theirs, **EXACT)
    absent = [token for token, row in enumerate(tokenizer.rows) if row is None]
    assert PAD in absent and bool((scores[..., absent] < -1e3).all())
    with torch.inference_mode():
        loss = both.run.trained.model(text=ours[:, :-1], targets=ours[:, 1:])
    assert_close(loss.total / loss.count, both.theirs(ids, labels=ids).loss, **EXACT)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_language_model_writes_what_transformers_writes(pair, name):
    both = pair(name)
    ids = both.tokenizer(LETTERS[0], return_tensors="pt")
    theirs = both.theirs.generate(**ids, do_sample=False, max_new_tokens=15, pad_token_id=0)[
        0, ids["input_ids"].shape[1] :
    ]
    ours = both.run.trained.generate(LETTERS[0], temperature=0, max_tokens=15)[0]
    assert ours == both.tokenizer.decode(theirs, skip_special_tokens=True) and len(theirs) > 3
    assert "".join(both.run.stream(LETTERS[0], temperature=0, max_tokens=15)) == LETTERS[0] + ours


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_a_translator_scores_pairs_as_transformers_does(pair, name):
    both = pair(name)
    source, target = (both.tokenizer(texts, return_tensors="pt", padding=True) for texts in (SENTENCES, LETTERS))
    generator = both.run.trained.generator
    encoded = generator.codec.collate(generator.encode(SENTENCES))
    written = [torch.tensor([SOS, *ids]) for ids in generator.tokenizer.encode_batch(LETTERS)]
    padded = torch.nn.utils.rnn.pad_sequence(written, batch_first=True, padding_value=PAD)
    rows = generator.tokenizer.rows
    assert [[rows[token] for token in row if token != PAD] for row in encoded.tolist()] == [
        [token for token, real in zip(ids, mask, strict=True) if real]
        for ids, mask in zip(source["input_ids"].tolist(), source["attention_mask"].tolist(), strict=True)
    ]
    start = both.theirs.config.decoder_start_token_id
    given = torch.cat([torch.full((2, 1), start), target["input_ids"][:, :-1]], 1)
    with torch.inference_mode():
        theirs = both.theirs(**source, decoder_input_ids=given).logits
        ours = of_their_words(both, generator.model.scores(encoded, padded))
    for number, row in enumerate(written):
        assert_close(ours[number, : len(row)], theirs[number, : len(row)], **EXACT)


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_a_translator_writes_what_transformers_writes(pair, name):
    both = pair(name)
    source = both.tokenizer(SENTENCES, return_tensors="pt", padding=True)
    rows = tokenizer_of(both).rows
    never = [row for row in (rows[SOS], rows[3]) if row is not None]
    theirs = both.theirs.generate(
        **source, num_beams=1, do_sample=False, max_new_tokens=12, suppress_tokens=never, forced_eos_token_id=None
    )
    found = both.run.translate(SENTENCES, beam_size=1, max_length_ratio=0, max_length_extra=12)
    assert [one.text for one in found] == both.tokenizer.batch_decode(theirs, skip_special_tokens=True)
    assert any(one.text for one in found)


def test_a_classifier_of_images_scores_as_transformers_does(pair, tmp_path):
    from PIL import Image

    both = pair("vit")
    pixels = np.random.default_rng(0).integers(0, 256, (12, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    with torch.inference_mode():
        theirs = both.theirs(**both.tokenizer(Image.fromarray(pixels), return_tensors="pt")).logits[0].softmax(-1)
    (found,) = both.run.predict([str(tmp_path / "a.png")])
    shares = {both.theirs.config.id2label[number]: float(share) for number, share in enumerate(theirs)}
    assert found.details["probabilities"] == pytest.approx(shares, abs=1e-5)
    assert found.answer == max(shares, key=shares.__getitem__)


@pytest.mark.parametrize("name", NAMES)
def test_ends_of_texts_are_known(pair, name):
    if name != "vit":
        assert tokenizer_of(pair(name)).rows[EOS] in (
            pair(name).tokenizer.eos_token_id,
            pair(name).tokenizer.sep_token_id,
        )
