import pytest
import torch

from regardant.positions.t5 import T5Config

SETTINGS = pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 20), (4, 3), (16, 1000)])


def build(num_buckets, max_distance, causal, num_heads=2):
    config = T5Config(num_buckets=num_buckets, max_distance=max_distance)
    return config.build(d_model=8, num_heads=num_heads, head_size=4, max_length=9, causal=causal)


def bucket_of(distance, num_buckets, max_distance):
    """Of one side: half of the buckets hold a distance each, the others up to max_distance on a logarithmic scale.

    b = e + floor((n - e) log(d / e) / log(m / e)), in whole numbers: how often (m / e)^i <= (d / e)^(n - e).
    """
    exact = num_buckets // 2
    if distance < exact:
        return distance
    steps = num_buckets - exact
    return exact + sum(max_distance**i * exact ** (steps - i) <= distance**steps for i in range(1, steps))


@SETTINGS
def test_where_the_future_is_hidden_all_buckets_are_of_the_past(num_buckets, max_distance):
    found = build(num_buckets, max_distance, causal=True).bucket(-torch.arange(1200)[None])[0].tolist()
    assert found == [bucket_of(distance, num_buckets, max_distance) for distance in range(1200)]
    assert found[max_distance] == num_buckets - 1


@SETTINGS
def test_where_it_is_not_half_of_them_are_of_keys_behind_the_query(num_buckets, max_distance):
    relative = torch.arange(-1200, 1200)
    found = build(num_buckets, max_distance, causal=False).bucket(relative[None])[0].tolist()
    side = num_buckets // 2
    assert found == [bucket_of(abs(d), side, max_distance) + side * (d > 0) for d in relative.tolist()]


def test_a_pair_gets_the_number_of_its_head_and_bucket():
    scheme, at = build(8, 20, causal=False), torch.arange(7)
    bias = scheme.bias(at, at)
    for h, i, j in torch.cartesian_prod(torch.arange(2), at, at).tolist():
        bucket = bucket_of(abs(i - j), 4, 20) + 4 * (j > i)
        assert bias[h, i, j] == scheme.table[h, bucket]


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 16), (32, 3), (4, 2)])
def test_distances_that_end_among_the_exact_buckets_are_refused(num_buckets, max_distance):
    with pytest.raises(ValueError, match=rf"max_distance \({max_distance}\) must be more than num_buckets / 2"):
        T5Config(num_buckets=num_buckets, max_distance=max_distance)
