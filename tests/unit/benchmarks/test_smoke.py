from benchmarks.smoke import BATCH_TOKENS, BATCHES, random_batches


def test_blocks_are_as_the_models_read_them():
    batches = random_batches()
    assert len(batches) == BATCHES
    for source, target in batches:
        assert len(source) == len(target)
        assert len(target) * (len(target[0]) - 1) <= BATCH_TOKENS
        for row in source + target:
            words = [token for token in row if token]
            assert row == words + [0] * (len(row) - len(words))
            assert words[-1] == 2 and words.count(2) == 1
        assert all(row[0] == 1 for row in target)


def test_they_are_the_same_every_time():
    assert random_batches() == random_batches()
