"""What a run of a smaller size leaves out never reaches its results: memory is full of NaN when it begins, from a run of the largest size."""
import numpy as np

import support
import varying_models
from varying_models import RangeCase
from varying_shapes import HoneAt


class VaryingLimits(RangeCase):
    def check(self, path, largest, sizes):
        """`largest` and `sizes` are inputs by name."""
        nan = {name: np.full_like(x, np.nan) if x.dtype.kind == "f" else x for name, x in largest.items()}
        names = list(support.reference(path, largest))
        for inputs in sizes:
            engine = HoneAt(self.folder / "model.so", nan, 2)
            engine.run()
            engine.set(inputs)
            self.expect_near(dict(zip(names, engine.run(), strict=True)), path, inputs)
            engine.close()

    def test_images(self):
        path = self.compile(varying_models.network(), "x=1..8x3x24x24")
        images = np.random.default_rng(1).standard_normal((8, 3, 24, 24)).astype(np.float32)
        self.check(path, {"x": images}, [{"x": images[:n]} for n in (1, 3, 7, 8)])

    def test_recurrent_nets(self):
        path = self.compile(varying_models.speech(), "batch=1..2", "seq=1..7")
        x = np.random.default_rng(3).standard_normal((7, 2, 4)).astype(np.float32)
        self.check(path, {"x": x}, [{"x": x[:steps, :batch]} for steps, batch in ((1, 1), (3, 2), (6, 1), (7, 2))])

    def test_recurrent_rows_of_lengths(self):
        path = self.compile(varying_models.speech_of_lengths(), "batch=1..2", "seq=1..7")
        rng = np.random.default_rng(4)
        self.check(path, varying_models.speech_inputs(rng, 7, 2),
                   [varying_models.speech_inputs(rng, steps, batch) for steps, batch in ((1, 1), (3, 2), (6, 1), (7, 2))])

    def test_steps_behind_a_past(self):
        path = self.compile(varying_models.decoder_with_past(), "batch=1..2", "seq=1..6", "past_len=1..9")
        rng = np.random.default_rng(2)

        def inputs(batch, seq, past):
            cache = (batch, varying_models.HEADS, past, varying_models.WIDTH // varying_models.HEADS)
            return {"ids": rng.integers(0, varying_models.WORDS, (batch, seq)), "past_k": rng.standard_normal(cache).astype(np.float32),
                    "past_v": rng.standard_normal(cache).astype(np.float32)}

        self.check(path, inputs(2, 6, 9), [inputs(*size) for size in ((1, 1, 1), (1, 6, 9), (2, 1, 4), (2, 5, 9), (2, 6, 3))])


if __name__ == "__main__":
    support.main()
