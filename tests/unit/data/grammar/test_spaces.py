from collections import Counter
from dataclasses import dataclass
from random import Random

from regardant.data.grammar.spaces import Choice, Product, Union, only


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


GRID = Product(Point, x=Choice((1, 2, 3)), y=Choice((4, 5)))
PLANE = Union((GRID, Product(Point, x=only(9))), (1, 3))


def test_size_counts_what_can_be_drawn():
    random = Random(0)
    drawn = {PLANE.draw(random) for _ in range(1000)}
    assert len(drawn) == PLANE.size == 7


def test_a_space_contains_what_it_draws_and_nothing_else():
    random = Random(1)
    assert all(PLANE.draw(random) in PLANE for _ in range(100))
    assert Point(1, 6) not in PLANE
    assert Point(9, 4) not in PLANE
    assert "a word" not in PLANE


def test_a_field_left_out_keeps_its_default():
    assert Point(9) in PLANE
    assert Product(Point, x=only(9)).draw(Random(0)) == Point(9, 0)


def test_weights_say_how_often():
    random = Random(2)
    counts = Counter(PLANE.draw(random).x == 9 for _ in range(4000))
    assert 2850 < counts[True] < 3150


def test_the_same_seed_draws_the_same():
    assert [GRID.draw(Random(3)) for _ in range(9)] == [GRID.draw(Random(3)) for _ in range(9)]
