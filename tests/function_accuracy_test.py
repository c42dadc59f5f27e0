"""How exact functions of one operand are over the whole range of float32, in units of the last place of the right result (ulp); of
double, the functions that are made of others. Oracle: NumPy and math in the next wider type. --print: the table of
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
    "Mish": ({}, mish, 5),
    "Softsign": ({}, lambda x: x / (1 + abs(x)), 2),
    "Exp": ({}, np.exp, 2),
    "Tanh": ({}, np.tanh, 5),
    "Sigmoid": ({}, sigmoid, 80),
    "Erf": ({}, erf, 4),
    "Asinh": ({}, np.arcsinh, 4)}
# These lose digits where the result is small beside x: absolute errors, of |x|.
GELU = {
    "Gelu": ({}, lambda x: x * 0.5 * erfc(-x / np.sqrt(2)), 1.5e-7),
    "Gelu_tanh": ({"approximate": "tanh"}, lambda x: x * sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)), 1.5e-7)}
# Without registers of 512 bits erf is a ratio of polynomials, where the products' rounding adds up beside 1.
WITHOUT_AVX512 = {"Erf": 5}
LEAST = 1e-35  # of a result: below, intermediate values are denormal, which count as zero


def samples():
    sizes = np.concatenate([np.geomspace(1e-34, 1e-3, 4000), np.geomspace(1e-3, 100, 40000), np.geomspace(100, 3e38, 2000)])
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
        self.path = self.save(make_model(nodes, [value("x", x.shape, code)], [value(name, x.shape, code) for name in functions], opset=20))
        return self.outputs(self.path, {"x": x})

    def has_avx512(self):
        host = next(device for device in self.succeed_json("devices") if device["name"] == "host")
        return host["key"].startswith("avx512")

    def test_single(self):
        x = samples().astype(np.float32)
        found = self.results(x, FUNCTIONS | GELU)
        limits = {} if self.has_avx512() else WITHOUT_AVX512
        for name, (_, function, most) in FUNCTIONS.items():
            off = ulps(found[name], exact(function, x, np.float64))
            worst = int(np.argmax(off))
            with self.subTest(name):
                self.assertLessEqual(off[worst], limits.get(name, most), f"at {x[worst]}: {found[name][worst]}")
        for name, (_, function, most) in GELU.items():
            right = exact(function, x, np.float64)
            off = np.where(abs(x) < 1e30, abs(found[name] - right) / np.maximum(abs(x), LEAST), 0)
            with self.subTest(name):
                self.assertLessEqual(off.max(), most)

    def test_double(self):
        x = np.float64(samples()[::50])
        functions = {name: FUNCTIONS[name] for name in ("Elu", "Softplus", "Softsign")} | {"Celu": FUNCTIONS["Celu"]}
        found = self.results(x, functions)
        for name, (_, function, most) in functions.items():
            off = ulps(found[name], exact(function, x, np.longdouble))
            worst = int(np.argmax(off))
            with self.subTest(name):
                self.assertLessEqual(off[worst], most, f"at {x[worst]}: {found[name][worst]}")

    def print_table(self):
        import onnxruntime

        x = samples().astype(np.float32)
        found = self.results(x, FUNCTIONS | GELU)
        session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        other = dict(zip([output.name for output in session.get_outputs()], session.run(None, {"x": x}), strict=True))
        print("| function | ulp | at | ONNX Runtime's ulp | at |\n|---|---|---|---|---|")
        for name, (_, function, _) in (FUNCTIONS | GELU).items():
            cells = [name.replace("_tanh", ", `approximate=tanh`")]
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
