"""Pooling by ONNX Runtime's rules: windows larger than the padded data with ceil_mode, counted padding, dilations, auto_pad, 1 to 3 dimensions."""
import itertools
import unittest

import numpy as np
import support
from onnx import TensorProto, helper

# extent, kernel, stride, padding before, padding behind, dilation
PLACES = [(1, 2, 2, 0, 0, 1), (1, 4, 3, 1, 1, 1), (2, 3, 3, 0, 0, 1), (2, 3, 2, 0, 0, 1), (2, 4, 3, 1, 0, 1), (2, 2, 3, 0, 0, 2), (3, 5, 3, 0, 1, 1),
          (3, 3, 3, 0, 0, 2), (3, 2, 2, 0, 0, 1), (4, 3, 2, 1, 1, 1), (5, 3, 3, 1, 0, 2)]
TYPES = {"MaxPool": [{}], "AveragePool": [{}, {"count_include_pad": 1}], "LpPool": [{}, {"p": 1}]}


def pools():
    """(operator, shape, attributes) of each case."""
    rows = [[place] for place in PLACES]
    rows += [[PLACES[i], PLACES[(3 * i + 1) % len(PLACES)]] for i in range(len(PLACES))]
    rows += [[PLACES[0], PLACES[3], PLACES[8]], [PLACES[4], PLACES[9], PLACES[1]]]
    for (operator, variants), places, auto_pad in itertools.product(TYPES.items(), rows, ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")):
        extents, kernels, strides, before, behind, dilations = zip(*places, strict=True)
        if auto_pad.startswith("SAME") and any(dilation > 1 for dilation in dilations):
            continue
        if auto_pad != "NOTSET" and len(places) > 1:
            continue
        # So small a place that even rounding up leaves no window: refused, by ONNX Runtime an empty result.
        pads = [low + high if auto_pad == "NOTSET" else 0 for low, high in zip(before, behind, strict=True)]
        rooms = [e + p - (k - 1) * d - 1 + s for e, p, k, d, s in zip(extents, pads, kernels, dilations, strides, strict=True)]
        if not auto_pad.startswith("SAME") and min(rooms) <= 0:
            continue
        for more in variants:
            attributes = {"kernel_shape": kernels, "strides": strides, "dilations": dilations, "ceil_mode": 1, **more}
            attributes |= {"pads": before + behind} if auto_pad == "NOTSET" else {"auto_pad": auto_pad}
            yield operator, (1, 2, *extents), attributes


class Pooling(support.Case):
    def test_ceil_mode_equals_onnx_runtime(self):
        rng = np.random.default_rng(43)
        nodes, inputs, outputs, data = [], [], [], {}
        for i, (operator, shape, attributes) in enumerate(pools()):
            nodes.append(helper.make_node(operator, [f"x{i}"], [f"y{i}"], name=f"pool{i}", **attributes))
            inputs.append(support.value(f"x{i}", shape))
            outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
            data[f"x{i}"] = rng.standard_normal(shape).astype(np.float32)
        model = self.save(support.make_model(nodes, inputs, outputs, opset=22))
        expected = support.reference(model, data)
        options = []
        for name, array in data.items():
            np.save(self.folder / f"{name}.npy", array)
            options += ["--input", f"{name}={self.folder / name}.npy"]
        self.succeed("run", model, "--output-dir", self.folder / "out", *options)
        for i, node in enumerate(nodes):
            found = np.load(self.folder / "out" / f"y{i}.npy")
            what = f"{node.op_type} of {data[f'x{i}'].shape}: {pretty(node)}"
            self.assertEqual(found.shape, expected[f"y{i}"].shape, what)
            np.testing.assert_allclose(found, expected[f"y{i}"], rtol=1e-5, atol=1e-6, err_msg=what)

    def test_a_window_that_rounding_up_does_not_place_is_refused(self):
        for extent, kernel, stride, ceil_mode in ((1, 2, 2, 0), (1, 4, 2, 1), (1, 2, 1, 1), (3, 6, 3, 1)):
            node = helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[kernel], strides=[stride], ceil_mode=ceil_mode)
            model = support.make_model([node], [support.value("x", (1, 1, extent))], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
            self.refuse(f"a window of {kernel} does not fit into {extent} elements", "compile", self.save(model), "-o", self.folder / "y.so")


def pretty(node):
    return " ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute)


if __name__ == "__main__":
    support.main()
