import json

import torch

from regardant.inspection.neighbours import nearest


def test_the_nearest_vectors_come_first_without_special_tokens_and_itself():
    table = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.9, 0.3], [0.0, 1.0], [1.0, 0.05]])
    assert [one for one, _ in nearest(table, 4, 3, first=1)] == [1, 2, 3]
    (best, cosine), *_ = nearest(table, 1, 1)
    assert best == 4 and cosine > 0.99


def test_the_pieces_of_a_text_are_listed_with_ids_and_neighbours(regardant, tiny_run):
    said = regardant("tokens", tiny_run, "the cat", "--neighbours", "2")
    assert said.code == 0 and said.lines[0].startswith("source: ")
    count = int(said.lines[0].split()[1])
    assert len([line for line in said.lines if line[:5].strip().isdigit()]) >= count
    content = json.loads(regardant("tokens", tiny_run, "the cat", "--json", "--neighbours", "2").out)["source"]
    assert len(content["labels"]) == len(content["ids"]) == count
    assert all(len(near) == 2 and near[0][1] >= near[1][1] for near in content["neighbours"])


def test_an_item_that_is_not_utf_8_is_read_with_replacement_characters(regardant, tiny_run):
    said = regardant("tokens", tiny_run, "the caf\udce9")
    assert said.code == 0 and said.out == regardant("tokens", tiny_run, "the caf\ufffd").out
    assert said.err == "'the caf\ufffd': not valid UTF-8, read with replacement characters\n"


def test_a_class_token_has_no_id_and_no_neighbours(regardant, trained_on_labels):
    opened = trained_on_labels("head={kind: sequence_class, pooling: class_token}", "training.max_updates=5")
    said = regardant("tokens", opened.folder, "the cat", "--neighbours", "2")
    assert said.code == 0 and said.lines[1].split() == ["0", "<class>"] and len(said.lines) == 4
    found = json.loads(regardant("tokens", opened.folder, "the cat", "--json", "--neighbours", "2").out)["input"]
    tokenizer = opened.trained.codec.tokenizer
    assert found["labels"] == ["<class>", *tokenizer.tokens(found["ids"][1:])]
    assert found["ids"] == [None, *tokenizer.encode("the cat")]
    assert [len(near) for near in found["neighbours"]] == [0, 2, 2]


def test_the_neighbours_of_target_tokens_are_of_the_target_vocabulary(regardant, trained):
    opened = trained("tokenizer.joint=false", "model.tie_embeddings=target", "training.max_updates=5")
    found = json.loads(regardant("tokens", opened.folder, "the cat", "--json", "--neighbours", "3").out)
    both = opened.translation.translator.tokenizers
    for name, tokenizer in (("source", both.source), ("target", both.target)):
        known = set(tokenizer.tokens(range(tokenizer.vocab_size)))
        near = {token for one in found[name]["neighbours"] for token, _ in one}
        assert near and near <= known


def test_without_neighbours_none_are_sought(regardant, tiny_run):
    assert json.loads(regardant("tokens", tiny_run, "the cat", "--json").out)["source"]["neighbours"] == []
