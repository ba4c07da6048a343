from benchmarks import toy_parts


def test_each_toy_has_a_score_for_each_part(monkeypatch):
    scores = iter(range(100))
    monkeypatch.setattr(toy_parts, "exact_match", lambda task, part: next(scores) / 100)
    found = {task: {part: toy_parts.exact_match(task, part) for part in toy_parts.PARTS} for task in toy_parts.DATA}
    lines = toy_parts.table(found).splitlines()
    assert lines[0] == "| recipe | attention | no positions | convolution |" and len(lines) == 2 + len(toy_parts.DATA)
    assert lines[2] == "| `copy` | 0.000 | 0.010 | 0.020 |"


def test_a_score_is_of_validation_sequences():
    brief = ("training.max_updates=2", "training.validate_every=2", "training.batch_tokens=128", "data.train_size=50")
    assert 0 <= toy_parts.exact_match("recall", "no positions", *brief) < 0.5
