import pytest
from regardant_profile import LEFT, part_of


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (["aten::mm", "aten::linear"], "matmul"),
        (["aten::addmm"], "matmul"),
        (["aten::mm", "_ProjectedCrossEntropy"], "loss"),
        (["aten::bmm", "aten::matmul", "autograd::engine::evaluate_function: _MatmulAttentionBackward"], "attention"),
        (["aten::bitwise_xor_", "_Dropout"], "dropout"),
        (["aten::mul", "_DropoutBackward"], "dropout"),
        (["aten::_fused_adamw_", "Optimizer.step#FabricAdamW.step"], "optimizer, clipping, average"),
        (["aten::_foreach_lerp_"], "optimizer, clipping, average"),
        (["aten::native_layer_norm_backward"], "norms"),
        (["aten::copy_", "aten::_to_copy"], "copies and casts"),
        (["aten::embedding_dense_backward"], "embedding"),
        (["aten::relu"], LEFT),
    ],
)
def test_an_operator_belongs_to_what_it_runs_inside_of_or_to_its_own_kind(names, part):
    assert part_of(names) == part
