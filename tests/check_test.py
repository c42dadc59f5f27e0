"""The check of a finished library against the model as imported: by compile and tune, through the tool."""
import numpy as np
from onnx import TensorProto, helper

import support
from support import Case, make_model, small_network, value


def embedding_model():
    """Token ids into a table, a product, the best three: an index, a mask and a choice."""
    rng = np.random.default_rng(1)
    constants = {"table": rng.standard_normal((50, 16)).astype(np.float32), "w": rng.standard_normal((16, 12)).astype(np.float32),
                 "k": np.array([3], dtype=np.int64)}
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]), helper.make_node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["u"]), helper.make_node("Mul", ["e", "u"], ["x"]),
        helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("TopK", ["s", "k"], ["best", "places"])]
    return make_model(nodes, [value("ids", (1, 8), TensorProto.INT64), value("mask", (1, 8), TensorProto.INT64)],
                      [value("best", (1, 8, 3)), value("places", (1, 8, 3), TensorProto.INT64)],
                      {**constants, "last": np.array([2], dtype=np.int64)})


class Check(Case):
    def compile(self, model, *options):
        return self.succeed_json("compile", model, "-o", self.folder / "model.so", "--no-db", "--threads", 2, *options)["check"]

    def expect_right(self, check):
        self.assertTrue(check["checked"], check)
        self.assertEqual((check["skipped"], check["faults"], check["guilty_pass"], check["node"]), ("", [], "", ""))
        self.assertGreater(check["seconds"], 0)
        self.assertLessEqual(check["worst_error"], check["tolerance"])

    def test_compile_checks_on_request(self):
        model = self.save(small_network())
        for accuracy in ("strict", "default", "fast"):
            check = self.compile(model, "--check", "--accuracy", accuracy)
            self.expect_right(check)
            self.assertEqual(check["inputs"], 3)
        check = self.compile(model, "--no-check")
        self.assertEqual((check["checked"], check["skipped"]), (False, "switched off"))
        # By default where it is cheap: that depends on the machine, but is said.
        check = self.compile(model)
        self.assertNotEqual(check["checked"], bool(check["skipped"]), check)
        self.refuse("--no-check", "compile", model, "-o", self.folder / "other.so", "--check", "--no-check")

    def test_indices_masks_and_choices(self):
        self.expect_right(self.compile(self.save(embedding_model()), "--check"))

    def test_the_largest_of_what_holds_nan_is_not_compared(self):
        """Which of them it is depends on the order in which they are read, and random numbers below 0 have no root."""
        for function, reduction in (("Sqrt", "ReduceMax"), ("Log", "ReduceMin")):
            for axis in (0, 1):
                nodes = [helper.make_node(function, ["x"], ["r"]), helper.make_node(reduction, ["r"], ["y"], axes=[axis], keepdims=0)]
                model = self.save(make_model(nodes, [value("x", (40, 300))], [value("y", ((300, 40)[axis],))], {}))
                check = self.compile(model, "--check")
                self.assertEqual((check["faults"], check["guilty_pass"]), ([], ""), check)

    def test_a_bound_input_is_no_input(self):
        np.save(self.folder / "mask.npy", np.ones((1, 8), dtype=np.int64))
        self.expect_right(self.compile(self.save(embedding_model()), "--check", "--bind", f"mask={self.folder / 'mask.npy'}"))

    def test_static_libraries_are_checked(self):
        report = self.succeed_json("compile", self.save(small_network()), "-o", self.folder / "model.a", "--no-db", "--check")
        self.expect_right(report["check"])

    def test_text_says_it(self):
        text = self.succeed("compile", self.save(small_network()), "-o", self.folder / "model.so", "--no-db", "--check")
        self.assertRegex(text, r"right on 3 random inputs: off by \S+ of the largest result at most, \S+ allowed")

    def test_text_is_short(self):
        nodes = [helper.make_node("Softmax", ["x" if i == 0 else f"t{i}"], [f"s{i}"]) for i in range(20)]
        nodes += [helper.make_node("Concat", [f"s{i}", f"s{i}"], [f"t{i + 1}"], axis=0) for i in range(20)]
        model = self.save(make_model(nodes, [value("x", (1, 8))], [value("s19", None)]))
        text = self.succeed("compile", model, "-o", self.folder / "model.so", "--no-db", "--no-check")
        self.assertRegex(text, r"and \d+ kernels more, which take \d+ % of the time: -v lists all")
        self.assertLess(len(text.splitlines()), 15)
        long = self.succeed("compile", model, "-o", self.folder / "model.so", "--no-db", "--no-check", "-v")
        self.assertGreaterEqual(len(long.splitlines()), 20)

    def test_tune_checks_always(self):
        model = self.save(small_network())
        report = self.succeed_json("tune", model, "-o", self.folder / "model.so", "--budget", "3s", "--threads", 1)
        self.expect_right(report["check"])
        report = self.succeed_json("tune", model, "-o", self.folder / "model.so", "--budget", "1s", "--threads", 1, "--no-check")
        self.assertFalse(report["check"]["checked"])


if __name__ == "__main__":
    support.main()
