import pytest
from regardant_decoding_profile import DECODING
from regardant_profile import TRAINING


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (["aten::mm", "aten::linear"], "matmul"),
        (["aten::addmm"], "matmul"),
        (["aten::mm", "_ProjectedCrossEntropy"], "loss"),
        (["aten::bmm", "aten::matmul", "autograd::engine::evaluate_function: _MatmulAttentionBackward"], "attention"),
        (["aten::mul", "_NarrowAttention"], "attention"),
        (["aten::bitwise_xor_", "_Dropout"], "dropout, some with ReLU"),
        (["aten::mul", "_DropoutBackward"], "dropout, some with ReLU"),
        (["aten::clamp_min", "_ReluAndDropout"], "dropout, some with ReLU"),
        (["aten::_fused_adamw_", "Optimizer.step#FabricAdamW.step"], "optimizer, clipping, average"),
        (["aten::_foreach_lerp_"], "optimizer, clipping, average"),
        (["aten::native_layer_norm_backward"], "norms"),
        (["aten::copy_", "aten::_to_copy"], "copies and casts"),
        (["aten::embedding_dense_backward"], "embedding"),
        (["aten::relu"], TRAINING.left),
    ],
)
def test_an_operator_belongs_to_what_it_runs_inside_of_or_to_its_own_kind(names, part):
    assert TRAINING.part_of(names) == part


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (["mkldnn::_linear_pointwise"], "products"),
        (["aten::bmm", "aten::scaled_dot_product_attention"], "attention"),
        (["aten::_log_softmax"], "log-softmax"),
        (["aten::topk"], "choice of continuations"),
        (["aten::index_select"], "moved keys, beams and sentences"),
        (["aten::native_layer_norm"], "norms"),
        (["aten::add"], DECODING.left),
    ],
)
def test_an_operator_of_a_search_belongs_to_its_part(names, part):
    assert DECODING.part_of(names) == part
