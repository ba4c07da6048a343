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


def test_without_neighbours_none_are_sought(regardant, tiny_run):
    assert json.loads(regardant("tokens", tiny_run, "the cat", "--json").out)["source"]["neighbours"] == []
