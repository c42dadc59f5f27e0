"""torch.compile(backend="hone") of the installed package, against PyTorch itself. Needs torch >= 2.4 (scripts/setup.sh --with-torch)."""
import faulthandler
import functools
import gc
import importlib.util
import logging
import os
import re
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from torch_case import OPTIONS, ROOT, Backend, Small  # before what needs torch

import torch
import torch.nn.functional as F
from torch import nn

import python_package
import python_package_test
import torch_zoo
from torch_edge_cases import Edges  # noqa: F401
from torch_operator_cases import Operators  # noqa: F401


class Semantics(Backend):
    def test_an_input_that_changes_is_seen_by_the_caller(self):
        def change(x, y):
            x.add_(1)
            y[0] = 5
            return x * y

        def ran(function):
            x, y = torch.ones(3, 4), torch.full((3, 4), 2.0)
            result = function(x, y)
            return x, y, result

        self.assert_same(ran(self.compiled(change)), ran(change))

    def test_a_buffer_that_a_call_changes_is_no_constant(self):
        class Count(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls += 1
                return x * self.calls

        module = Count()
        function = self.compiled(module)
        with torch.no_grad():
            for call in range(1, 4):
                self.assert_same(function(torch.ones(4)), torch.full((4,), float(call)))
        self.assertEqual(float(module.calls), 3)
        self.assertEqual(self.last_report().libraries, 1)

    def test_results_share_memory_as_in_pytorch(self):
        def share(x):
            y = x * 2
            return x.view(-1), y, y[1:], y.t(), x

        x = torch.randn(4, 4)
        found = self.compiled(share)(x)
        self.assert_same(found, share(x))
        self.assertEqual(found[0].data_ptr(), x.data_ptr())
        self.assertIs(found[4], x)
        found[1].zero_()
        self.assertEqual(float(found[2].abs().sum() + found[3].abs().sum()), 0)

    def test_inputs_and_results_lie_as_pytorch_has_them(self):
        def lay(x):
            return F.relu(x), (x + 1).transpose(0, 1), (x * 2).to(memory_format=torch.channels_last)

        image = torch.randn(2, 3, 4, 5)
        for x in (image, image.to(memory_format=torch.channels_last), image.permute(0, 2, 3, 1), torch.randn(2, 3, 4, 10)[..., ::2], image[:1].expand(2, 3, 4, 5)):
            torch._dynamo.reset()
            found, wanted = self.check(lay, x)
            self.assertEqual([tensor.stride() for tensor in found], [tensor.stride() for tensor in wanted])

    def test_numbers_as_inputs(self):
        def scale(x, factor, times, flag):
            return (x * factor, x + times, x.size(0) * 2) if flag else (x - factor, x / times, None)

        function, x = self.compiled(scale), torch.randn(3)
        for numbers in ((2.5, 3, True), (1.5, 3, True), (0.5, 4, False), (2.0, 7, True), (-1.0, 2, False)):
            found, wanted = function(x, *numbers), scale(x, *numbers)
            self.assert_same(found, wanted)
            self.assertEqual([type(part) for part in found], [type(part) for part in wanted])
            self.assertEqual(found[2], wanted[2])

    def test_types_and_numbers_without_dimensions(self):
        def mix(flags, bytes_, ints, doubles, number):
            return flags.logical_not(), bytes_.float() / 255, ints * 2 + 1, doubles + 1, number * 2, {"sum": (ints > 1).sum(), "nothing": None}

        inputs = torch.tensor([True, False]), torch.tensor([0, 255], dtype=torch.uint8), torch.tensor([1, 2**40]), torch.tensor([1.5], dtype=torch.float64), torch.tensor(4.0)
        found, wanted = self.check(mix, *inputs)
        self.assertEqual([tensor.dtype for tensor in torch_zoo.tensors(found)], [tensor.dtype for tensor in torch_zoo.tensors(wanted)])
        self.assertIsNone(found[5]["nothing"])
        for dtype in (torch.float16, torch.bfloat16):
            torch._dynamo.reset()
            found, wanted = nn.Linear(8, 4).to(dtype), torch.randn(2, 8).to(dtype)
            with torch.no_grad():
                result = self.compiled(found)(wanted)
                self.assertEqual(result.dtype, dtype)
                self.assert_same(result, found(wanted), 2e-2)

    def test_a_graph_that_breaks(self):
        seen = []

        def breaks(x):
            y = torch.relu(x @ x)
            seen.append(float(y.sum()))  # PyTorch has to know the number here
            return torch.tanh(y) if seen[-1] > 0 else y

        x = torch.randn(6, 6)
        with torch.no_grad():
            self.assert_same(self.compiled(breaks)(x), breaks(x))
        self.assertGreater(len(hone.torch.reports()), 1)

    def test_what_hone_does_not_know_stays_pytorchs(self):
        def partly(x):
            y = torch.relu(x @ x)
            z = torch.special.i0(y) + 1
            return torch.fft.rfft(z).abs(), torch.tanh(z @ y)

        x = torch.randn(8, 8) / 8
        self.assert_same(self.compiled(partly, strict=False)(x), partly(x))
        report = self.last_report()
        self.assertIn("aten.i0.default", {operator for operator, _ in report.left.values()})
        self.assertGreaterEqual(report.libraries, 2)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "the operator aten.i0.default"):
            self.compiled(partly)(x)

    def test_what_hone_refuses_stays_pytorchs(self):
        def far(x):  # more results between two elements of the data than docs/user/limits.md allows
            return torch.tanh(F.conv_transpose2d(torch.relu(x) + 1, torch.ones(1, 1, 1, 1), stride=70)) * 2

        x = torch.randn(1, 1, 2, 3)
        function = self.compiled(far, strict=False)
        for _ in range(2):
            self.assert_same(function(x), far(x))
        report = self.last_report()
        self.assertEqual([operator for operator, _ in report.left.values()], ["aten.convolution.default"])
        self.assertEqual(report.libraries, 2)

    def test_gradients_are_pytorchs(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        with self.assertLogs("hone.torch", logging.WARNING) as logged:
            result = self.compiled(module, strict=False)(x)
        self.assertIn("torch.no_grad()", logged.output[0])
        result.sum().backward()
        self.assertIsNotNone(module.conv.weight.grad)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "gradients are wanted"):
            self.compiled(module)(x)
        torch._dynamo.reset()
        with torch.inference_mode():
            self.assert_same(self.compiled(module)(x), module(x))
            self.assert_same(self.compiled(module)(x.requires_grad_(False).clone()), module(x))

    def test_training_statistics_are_pytorchs_or_right(self):
        module, other = nn.BatchNorm2d(3).train(), nn.BatchNorm2d(3).train()
        x = torch.randn(2, 3, 4, 4)
        with torch.no_grad():
            function = self.compiled(module, strict=False)
            for _ in range(2):
                self.assert_same(function(x), other(x))
        self.assert_same(list(module.buffers()), list(other.buffers()))


class Parameters(Backend):
    def test_new_values_are_used(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        function = self.compiled(module)
        with torch.no_grad():
            self.assert_same(function(x), module(x))
            module.load_state_dict(Small().state_dict())
            self.assert_same(function(x), module(x))
            module.head.weight.data = torch.randn(5, 8)
            self.assert_same(function(x), module(x))
            module.norm.running_mean.fill_(0.5)
            self.assert_same(function(x), module(x))
            module.head = nn.Linear(8, 5)
            self.assert_same(function(x), module(x))

    def test_rows_of_a_large_table_are_read_where_pytorch_has_them(self):
        module, x = nn.Sequential(nn.Embedding(8192, 64), nn.Linear(64, 8)).eval(), torch.randint(0, 8192, (2, 5))
        function = self.compiled(module)
        with torch.no_grad():
            part = self.part_of(functools.partial(function, x))
            self.assert_same(function(x), module(x))
            self.assertLess(Path(part.libraries[0].model.path).stat().st_size, module[0].weight.nbytes // 2)
            module[0].weight.data.add_(1)  # PyTorch does not count this
            self.assert_same(function(x), module(x))
            module[0].weight = nn.Parameter(torch.randn(8192, 64))
            self.assert_same(function(x), module(x))
            self.assertEqual(len(part.libraries), 1)

    def test_a_table_that_is_not_aligned_is_a_constant(self):
        memory = torch.randn(8192 * 64 + 4)
        table = memory[1:1 + 8192 * 64].view(8192, 64)
        module, x = nn.Sequential(nn.Embedding.from_pretrained(table), nn.Linear(64, 8)).eval(), torch.randint(0, 8192, (2, 5))
        function = self.compiled(module)
        with torch.no_grad():
            part = self.part_of(functools.partial(function, x))
            self.assert_same(function(x), module(x))
            self.assertGreater(Path(part.libraries[0].model.path).stat().st_size, table.nbytes)

    def test_a_table_that_a_product_reads_too(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(4096, 128)

            def forward(self, x):
                return F.linear(torch.tanh(self.table(x)), self.table.weight)

        module, x = Tied().eval(), torch.randint(0, 4096, (1, 3))
        function = self.compiled(module)
        with torch.no_grad():
            part = self.part_of(functools.partial(function, x))
            self.assertEqual(len(part.libraries[0]._inputs), 2)
            for _ in range(2):
                self.assert_same(function(x), module(x))
                module.table.weight.mul_(0.5)
            self.assert_same(function(x), module(x))

    def test_values_that_change_again_and_again_are_left_to_pytorch(self):
        module, x = nn.Linear(4, 4), torch.randn(2, 4)
        function = self.compiled(module, strict=False)
        with torch.no_grad(), self.assertLogs("hone.torch", logging.WARNING) as logged:
            for _ in range(12):
                module.weight.mul_(0.5)
                self.assert_same(function(x), module(x))
        self.assertIn("parameters have changed", " ".join(logged.output))

    def test_layers_of_one_class_have_their_own(self):
        layers = [nn.Linear(4, 4) for _ in range(3)]
        x = torch.randn(2, 4)
        functions = [self.compiled(layer) for layer in layers]
        with torch.no_grad():
            for _ in range(2):
                for layer, function in zip(layers, functions):
                    self.assert_same(function(x), layer(x))

    def test_a_module_that_is_gone_takes_its_library_along(self):
        with torch.no_grad():
            part = self.part_of(functools.partial(self.compiled(Small().eval()), torch.randn(2, 3, 8, 8)))
        path = Path(part.libraries[0].model.path)
        self.assertTrue(path.exists())
        del part
        torch._dynamo.reset()
        gc.collect()
        self.assertFalse(path.exists())


class Sizes(Backend):
    def test_two_batches(self):
        module = Small().eval()
        function = self.compiled(module)
        with torch.no_grad():
            for batch in (1, 2, 5, 3, 1):
                x = torch.randn(batch, 3, 8, 8)
                self.assert_same(function(x), module(x))

    def test_a_range_is_one_library(self):
        module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
        function = self.compiled(module)
        with torch.no_grad():
            for batch in (4, 2, 7, 16):
                x = torch.randn(batch, 5, 8)
                torch._dynamo.mark_dynamic(x, 0, min=2, max=16)
                self.assert_same(function(x), module(x))
        self.assertEqual(self.last_report().libraries, 1)

    def test_a_size_outside_of_the_range_gets_another_library(self):
        module = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
        function = self.compiled(module, dynamic=True)
        with torch.no_grad():
            for length in (5, 9, 3, 40):
                x = torch.randn(2, length, 16)
                self.assert_same(function(x), module(x))
        self.assertEqual(self.last_report().libraries, 2)

    def test_sizes_as_numbers(self):
        def sizes(x):
            return x.view(x.size(0) * x.size(1), -1) + 1, x.size(0) + x.size(1), torch.arange(x.size(1)) + x[0, :, 0], x.new_zeros(x.size(1), 2) + 1

        function = self.compiled(sizes, dynamic=True, ranges=False)
        for shape in ((2, 3, 4), (3, 5, 4), (4, 2, 4)):
            x = torch.randn(shape)
            found, wanted = function(x), sizes(x)
            self.assert_same(found, wanted)
            self.assertEqual(found[1], wanted[1])


class Running(Backend):
    def test_threads(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        function = self.compiled(module)
        with torch.no_grad():
            wanted = module(x)
            function(x)
        errors = []

        def run():
            with torch.no_grad():
                errors.extend(torch_zoo.error(function(x), wanted) for _ in range(50))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(errors), 200)
        self.assertLess(max(errors), 1e-4)

    def test_a_fork(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        function = self.compiled(module)
        with torch.no_grad():
            wanted = module(x)
            function(x)
            child = os.fork()
            if child == 0:
                os._exit(0 if torch_zoo.error(function(x), wanted) < 1e-4 else 1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assert_same(function(x), wanted)

    def test_tuning(self):
        module, x = Small().eval(), torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            function = self.compiled(module, budget_seconds=4, max_trials=4)
            part = self.part_of(lambda: self.assert_same(function(x), module(x)))
        self.assertGreater(part.libraries[0].model.summary.trials, 0)

    def test_wrong_options(self):
        def refused(message, mode=None, **options):
            torch._dynamo.reset()
            with self.assertRaisesRegex(Exception, message):
                torch.compile(lambda x: x + 1, backend="hone", mode=mode, options=None if mode else {**OPTIONS, **options})(torch.ones(2))

        refused("there is no option 'speed'", speed=3)
        refused("there is no option 'shapes'", shapes={})
        refused("'threads' is of the Python type str", threads="many")
        refused("'strict' is of the Python type int", strict=1)
        refused("no device 'toaster'|toaster", device="toaster")
        refused("argument 'mode' means nothing", mode="max-autotune")


class Models(Backend):
    def run_model(self, name):
        model, inputs, keywords = torch_zoo.make(name)
        with torch.no_grad():
            self.assert_same(self.compiled(model)(*inputs, **keywords), model(*inputs, **keywords), 1e-3)

    @unittest.skipUnless(importlib.util.find_spec("torchvision"), "there is no torchvision")
    def test_torchvision(self):
        self.run_model("mobilenet_v3_small")

    @unittest.skipUnless(importlib.util.find_spec("timm"), "there is no timm")
    def test_timm(self):
        self.run_model("timm/pit_ti_224")

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "there is no transformers")
    def test_transformers(self):
        self.run_model("text/bert")
        torch._dynamo.reset()
        self.run_model("text/llama")


class Documentation(Backend):
    def test_all_that_is_public_has_types(self):
        self.assertEqual(python_package.untyped(hone.torch), [])

    def test_the_examples_run(self):
        text = (ROOT / "docs" / "user" / "torch.md").read_text()
        found = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertTrue(found)
        exec(re.sub(r'"budget_seconds": \d+', '"budget_seconds": 4', "\n".join(found)), {})  # noqa: S102


if __name__ == "__main__":
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="hone-torch") as temporary:
        site = os.environ.get("HONE_SITE") or python_package_test.install(Path(temporary))
        sys.path.insert(0, str(site))
        os.environ["XDG_DATA_HOME"] = temporary
        import hone
        import hone.torch  # noqa: F401
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
