"""A stand-in for the package pyarrow, of which Table.arrow() uses so much: it checks what it gets as PyArrow does, and
keeps it.

It is a test's module `pyarrow` where PyArrow is not installed, as it takes 170 MB."""
import numpy as np


class Array:
    def __init__(self, values):
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise TypeError("only handle 1-dimensional arrays")
        if values.dtype == object and not all(isinstance(value, str) for value in values):
            raise TypeError("expected texts")
        self.values, self.size = values, 1

    def __len__(self):
        return len(self.values) // self.size

    def to_pylist(self):
        return self.values.tolist() if self.size == 1 else self.values.reshape(-1, self.size).tolist()


class FixedSizeListArray(Array):
    @classmethod
    def from_arrays(cls, values, size):
        if not isinstance(values, Array) or len(values) % size:
            raise ValueError(f"the values are no multiple of {size}")
        made = cls(values.values)
        made.size = size
        return made


class Table(dict):
    @property
    def num_rows(self):
        return len(next(iter(self.values())))

    def __arrow_c_stream__(self, requested_schema=None):
        return ("stream", requested_schema, list(self))


def array(values):
    return Array(values)


def table(columns):
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("columns of different lengths")
    return Table(columns)
