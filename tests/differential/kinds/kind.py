"""A kind of models: how random ones are made, and the options that they are compiled with."""
import dataclasses
import typing

import numpy as np

ATTEMPTS = 10


@dataclasses.dataclass
class Kind:
    """make: a function of a seeded generator, a prefix of names and an opset that returns a graph, or None."""

    name: str
    make: typing.Callable
    opsets: tuple = (13, 14, 15, 17, 18, 19, 20, 21, 22, 23)
    arguments: tuple = ()  # of hone compile
    imports: typing.Callable = lambda rng: {}  # versions of other domains

    def models(self, seed, count):
        """(opset, that many subgraphs)"""
        rng = np.random.default_rng([seed, *self.name.encode()])
        opset = self.opsets[int(rng.integers(len(self.opsets)))]
        imports = self.imports(rng)
        return opset, [graph for i in range(count) if (graph := self._model(f"s{i}_", opset, imports, rng))]

    def _model(self, prefix, opset, imports, rng):
        for _ in range(ATTEMPTS):
            graph = self.make(prefix, opset, imports, np.random.default_rng(rng.integers(2**63)))
            graph.choose_outputs(rng)
            if graph.outputs:
                return graph
        return None
