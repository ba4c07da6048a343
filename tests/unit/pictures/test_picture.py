import numpy as np
import pytest

from regardant.pictures import AttentionPicture


def picture_of(weights, **more):
    return AttentionPicture("t", ["a", "b", "c"], ["x", "y"], weights, **more)


def even(*shape):
    return np.full(shape, 1 / shape[-1], dtype=np.float32)


def test_weights_that_do_not_fit_the_words_are_refused_with_the_shape_to_give():
    with pytest.raises(ValueError, match=r"weights are \[1, 1, 3, 2\]; give \[layers, heads, 2 target words, 3"):
        picture_of(even(1, 1, 3, 2))


def test_weights_without_a_head_are_refused():
    with pytest.raises(ValueError, match="each at least 1"):
        picture_of(even(2, 0, 2, 3))


@pytest.mark.parametrize("wrong", [np.nan, -0.5, 3.0])
def test_what_is_not_attention_is_refused(wrong):
    weights = even(1, 1, 2, 3)
    weights[0, 0, 1, 2] = wrong
    with pytest.raises(ValueError, match="give attention after its softmax"):
        picture_of(weights)


@pytest.mark.parametrize("link", [(3, 0), (0, 2), (-1, 0)])
def test_a_gold_link_to_no_word_is_refused(link):
    with pytest.raises(ValueError, match="outside 3 source and 2 target words"):
        picture_of(even(1, 1, 2, 3), gold={link})


@pytest.mark.parametrize("chosen", [(2, 0), (0, 2), (0, -2), (-1, 0)])
def test_a_choice_of_no_head_is_refused(chosen):
    with pytest.raises(ValueError, match="is not drawn; choose 0 to 1"):
        picture_of(even(2, 2, 2, 3), chosen=chosen)


def test_without_a_head_the_matrix_is_the_mean_of_its_layer_alone():
    weights = np.zeros((2, 2, 2, 3))
    weights[1, 0, :, 0] = 1
    weights[1, 1, :, 2] = 1
    picture = picture_of(weights, chosen=(1, -1))
    assert picture.matrix(1, None).tolist() == [[0.5, 0, 0.5]] * 2
    assert picture.matrix(1, 1).tolist() == [[0, 0, 1]] * 2


def test_units_that_do_not_make_up_the_pieces_are_refused():
    units = [("ab", 2), ("c", 1)]
    assert picture_of(even(1, 1, 2, 3), source_units=units, target_units=[("xy", 2)]).source_units == units
    with pytest.raises(ValueError, match="target_units are made of 3 pieces; give units of all 2"):
        picture_of(even(1, 1, 2, 3), source_units=units, target_units=units)
    with pytest.raises(ValueError, match="give those of source and target, or none"):
        picture_of(even(1, 1, 2, 3), source_units=units)


def test_a_word_gets_the_sum_over_its_pieces_and_attends_by_their_mean():
    weights = np.array([[[[0.5, 0.2, 0.3], [0.1, 0.3, 0.6]]]])
    units = {"source_units": [("ab", 2), ("c", 1)], "target_units": [("xy", 2)]}
    merged = picture_of(weights, gold={(0, 0)}, chosen=(0, 0), **units).in_words()
    assert (merged.source, merged.target, merged.gold) == (["ab", "c"], ["xy"], ())
    np.testing.assert_allclose(merged.weights, [[[[0.55, 0.45]]]])
    assert merged.chosen == (0, 0) and not merged.has_words


def test_without_units_a_picture_stays_as_it_is():
    picture = picture_of(even(1, 1, 2, 3))
    assert picture.in_words() is picture


def test_names_of_heads_count_from_1():
    picture = picture_of(even(2, 2, 2, 3))
    assert picture.head_name(1, 0) == "Cross-attention, layer 2, head 1"
    assert picture.head_name(0, None) == "Cross-attention, layer 1, mean of heads"
