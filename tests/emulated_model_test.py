"""The kernels that Hone chooses for small models on GPUs of CUDA, run as CUDA C on this machine (emulate_model.cc)."""

import os
import subprocess
import unittest

import support  # first: it says where the others are
from devices_test import attention_block
from support import Case

import in_half

PROGRAM = os.environ.get("HONE_EMULATE_MODEL", "hone_emulate_model")
MOST = 3e7  # operations of a kernel


class EmulatedModel(Case):
    def check(self, model, kernels):
        path = self.save(model)
        for device in ("cuda-sm_80", "cuda-sm_90a"):
            ran = subprocess.run([PROGRAM, path, device, str(MOST)], capture_output=True, text=True, timeout=600)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertNotIn("left out", ran.stdout)
            self.assertGreaterEqual(ran.stdout.count("right"), kernels, ran.stdout)

    def test_convolutions(self):
        self.check(support.small_network(), 3)

    def test_convolutions_in_half_precision(self):
        for name in ("float16", "bfloat16"):
            self.check(in_half.in_half(support.small_network(), name), 3)

    def test_attention(self):
        self.check(attention_block(), 3)

    def test_attention_in_half_precision(self):
        for name in ("float16", "bfloat16"):
            self.check(in_half.in_half(attention_block(), name), 3)


if __name__ == "__main__":
    unittest.main()
