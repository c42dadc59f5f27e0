"""How exact functions of one operand are over the whole range of float32, in units of the last place of the right result (ulp); of
double, the functions that are made of others, and angles. Oracle: NumPy and math in the next wider type. --print: the table of
docs/user/embedding.md, with ONNX Runtime beside it."""
import math
import sys

import numpy as np
from onnx import helper

import support
from support import Case, make_model, value

ALPHA, GAMMA = np.float32(1.67326319217681884765625), np.float32(1.05070102214813232421875)


erf, erfc = np.vectorize(math.erf), np.vectorize(math.erfc)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def mish(x):
    e = np.exp(np.minimum(x, 40))
    n = e * (e + 2)
    return x * (n / (n + 2))


# By name: the attributes, the function, and the most ulp.
FUNCTIONS = {
    "Elu": ({}, lambda x: np.where(x > 0, x, np.expm1(x)), 4),
    "Celu": ({"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)), 4),
    "Selu": ({}, lambda x: np.where(x > 0, x.dtype.type(GAMMA) * x, x.dtype.type(ALPHA) * x.dtype.type(GAMMA) * np.expm1(x)), 4),
    "Softplus": ({}, lambda x: np.where(x > 40, x, np.log1p(np.exp(np.minimum(x, 40)))), 4),
    "Mish": ({}, mish, 4),
    "Softsign": ({}, lambda x: x / (1 + abs(x)), 2),
    "Exp": ({}, np.exp, 2),
    "Log": ({}, np.log, 2),
    "Tanh": ({}, np.tanh, 4),
    "Sigmoid": ({}, sigmoid, 4),
    "Swish": ({}, lambda x: x * sigmoid(x), 4),
    "Swish_alpha": ({"alpha": 1.702}, lambda x: x * sigmoid(np.float32(1.702).astype(x.dtype) * x), 4),
    "Erf": ({}, erf, 4),
    "Gelu": ({}, lambda x: x * 0.5 * erfc(-x / np.sqrt(2)), 4),
    "Gelu_tanh": ({"approximate": "tanh"}, lambda x: x * sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)), 4),
    "Sin": ({}, np.sin, 2),
    "Cos": ({}, np.cos, 2),
    "Tan": ({}, np.tan, 4),
    "Asin": ({}, np.arcsin, 4),
    "Acos": ({}, np.arccos, 4),
    "Atan": ({}, np.arctan, 4),
    "Sinh": ({}, np.sinh, 4),
    "Cosh": ({}, np.cosh, 4),
    "Asinh": ({}, np.arcsinh, 4),
    "Acosh": ({}, np.arccosh, 4),
    "Atanh": ({}, np.arctanh, 4)}
LEAST = 1e-35  # of a result: below, intermediate values are denormal, which count as zero


def samples():
    sizes = np.concatenate([np.geomspace(1e-34, 1e-3, 4000), np.geomspace(1e-3, 100, 40000), np.geomspace(100, 3e38, 20000),
                            1 - np.geomspace(6e-8, 0.5, 2000), 1 + np.geomspace(1.2e-7, 0.5, 2000)])
    return np.concatenate([sizes, -sizes])


def exact(function, x, wide):
    with np.errstate(all="ignore"):
        return function(x.astype(wide))


def ulps(found, right):
    """The error of each element in units of the last place; 0 where the result overflows or is tiny."""
    with np.errstate(all="ignore"):
        narrow = right.astype(found.dtype)
        unit = np.spacing(abs(narrow)).astype(right.dtype)
        off = abs(found.astype(right.dtype) - right) / unit
    return np.where(np.isfinite(narrow) & (abs(right) > LEAST), off, 0)


class Accuracy(Case):
    def results(self, x, functions):
        nodes = [helper.make_node(name.split("_")[0], ["x"], [name], **attributes) for name, (attributes, _, _) in functions.items()]
        code = helper.np_dtype_to_tensor_dtype(x.dtype)
        self.path = self.save(make_model(nodes, [value("x", x.shape, code)], [value(name, x.shape, code) for name in functions], opset=24))
        return self.outputs(self.path, {"x": x})

    def test_single(self):
        x = samples().astype(np.float32)
        found = self.results(x, FUNCTIONS)
        for name, (_, function, most) in FUNCTIONS.items():
            off = ulps(found[name], exact(function, x, np.float64))
            worst = int(np.argmax(off))
            with self.subTest(name):
                self.assertLessEqual(off[worst], most, f"at {x[worst]}: {found[name][worst]}")

    def test_double(self):
        x = np.float64(samples()[::50])
        functions = {name: FUNCTIONS[name] for name in ("Elu", "Celu", "Softplus", "Softsign", "Sin", "Cos", "Tan")}
        found = self.results(x, functions)
        for name, (_, function, most) in functions.items():
            off = ulps(found[name], exact(function, x, np.longdouble))
            worst = int(np.argmax(off))
            with self.subTest(name):
                self.assertLessEqual(off[worst], most, f"at {x[worst]}: {found[name][worst]}")

    def test_gelu_of_double_and_of_constants(self):
        """Relative errors: the argument's rounding counts for much where the result is small."""
        for dtype, most in ((np.float64, 1e-12), (np.float32, 5e-7)):
            x = np.linspace(-12, 4, 4001).astype(dtype)
            forms = {"Gelu": {}, "Gelu_tanh": {"approximate": "tanh"}}
            code = helper.np_dtype_to_tensor_dtype(x.dtype)
            nodes = [helper.make_node("Gelu", [given], [f"{name}_{given}"], **attributes)
                     for name, attributes in forms.items() for given in ("x", "c")]
            outputs = [value(node.output[0], x.shape, code) for node in nodes]
            path = self.save(make_model(nodes, [value("x", x.shape, code)], outputs, {"c": x}, 20))
            found = self.outputs(path, {"x": x})
            for name in forms:
                right = FUNCTIONS[name][1](x.astype(np.float64))
                for given in ("x", "c"):
                    np.testing.assert_allclose(found[f"{name}_{given}"], right, rtol=most, atol=LEAST, err_msg=f"{name} {dtype} {given}")

    def print_table(self):
        import onnxruntime

        x = samples().astype(np.float32)
        found = self.results(x, FUNCTIONS)
        session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        other = dict(zip([output.name for output in session.get_outputs()], session.run(None, {"x": x}), strict=True))
        print("| function | ulp | at | ONNX Runtime's ulp | at |\n|---|---|---|---|---|")
        for name, (_, function, _) in FUNCTIONS.items():
            cells = [name.replace("_tanh", ", `approximate=tanh`").replace("_alpha", ", `alpha=1.702`")]
            for results in (found, other):
                off = ulps(results[name], exact(function, x, np.float64))
                cells += [f"{off.max():.2g}", f"{x[int(np.argmax(off))]:.3g}"]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    if "--print" in sys.argv:
        accuracy = Accuracy()
        accuracy.setUp()
        accuracy.print_table()
        accuracy.doCleanups()
    else:
        support.main()
