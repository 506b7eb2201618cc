"""onnx's own checker, with shapes and values inferred through the whole graph."""

import onnx


def test_full_shape_inference(glyphs):
    path = glyphs.bundle.path / "model.onnx"
    onnx.checker.check_model(path, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True, data_prop=True)
    known = {value.name for value in (*inferred.graph.value_info, *inferred.graph.output)}
    assert {name for node in inferred.graph.node for name in node.output} - {""} <= known
    shapes = {
        value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in (*inferred.graph.input, *inferred.graph.output)
    }
    height, width = glyphs.bundle.preprocessing.crop_size
    assert shapes == {
        "pixel_values": ["batch", 3, height, width],
        "logits": ["batch", 12],
        "topk_scores": ["batch", 5],
        "topk_indices": ["batch", 5],
    }
