"""What databases have, as tables of arrays."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hone import _native
from hone.errors import InputError

if TYPE_CHECKING:
    from hone import _types


class Table(Mapping[str, np.ndarray]):
    """Arrays of equal length by name, the columns; a dict of them (dict(table)) is what pandas, polars and PyArrow take.

    Columns of texts are arrays of str objects, of which equal ones are one object.

    Attributes:
        meta: a dict of what else is known: of a data set, the names of features, tasks and devices.
    """

    def __init__(self, columns: dict[str, Any], meta: dict[str, Any] | None = None) -> None:
        self._columns = columns  # arrays, or (int32 codes, list of distinct texts)
        self.meta = meta or {}

    def __getitem__(self, name: str) -> np.ndarray:
        column = self._columns[name]
        if isinstance(column, tuple):
            codes, texts = column
            column = self._columns[name] = np.array(texts or [""], object)[codes]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self[next(iter(self))])

    def structured(self) -> np.ndarray:
        """A copy as one structured array of NumPy, [rows], with a field for each column; texts are fields of objects."""
        columns = dict(self)
        array = np.empty(self.rows, [(name, column.dtype, column.shape[1:]) for name, column in columns.items()])
        for name, column in columns.items():
            array[name] = column
        return array

    def arrow(self) -> Any:
        """A pyarrow.Table with the same columns; it needs the package pyarrow, else it raises InputError."""
        try:
            import pyarrow
        except ImportError:
            raise InputError("a table of Arrow needs the package pyarrow: pip install pyarrow") from None

        def column_of(column):
            if column.ndim == 1:
                return pyarrow.array(column)
            return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(column.reshape(-1)), column.shape[1])

        return pyarrow.table({name: column_of(column) for name, column in self.items()})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as a stream of Arrow's C interface, for who knows it (PyArrow, polars, DuckDB); it needs pyarrow, too."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"hone.Table({self.rows} rows: {', '.join(self)})"


def records(db: _types.Path = "", *, task: int | None = None, kernel_class: str | None = None, device: str | None = None,
            model: str | None = None, threads: int | None = None) -> Table:
    """The measurements of a database.

    Args:
        db: an SQLite file, postgres://user@host/name, or "" for ~/.local/share/hone/hone.db.
        task, kernel_class, device, model, threads: only those of this task's key, kernel class, device's key, model's name, number
            of threads; None: any.

    Returns: a Table with a row for each measurement, oldest first. Columns: task (uint64), kernel_class, device, threads (int32),
        model, version, algorithm, accuracy, steps, outcome (texts), seconds (float64; inf where the outcome is not "ok"), verified
        (bool), unix_time (int64).
    Raises: InputError if there is no such database, InternalError if it cannot be read.
    """
    return Table(_native.records(os.fspath(db), task, kernel_class, device, model, threads))


def dataset(db: _types.Path = "") -> Table:
    """The measured schedules of a database with their features, to train cost models on.

    Args:
        db: as for records.

    Returns: a Table with a row for each schedule on a CPU with a number of threads. Columns: statements and combined (float32
        [rows, f], the features of these names), bounds (float32 [rows, 2], shares of the time for memory and arithmetic),
        bounds_counted (uint8), seconds (float64), task and device (int32, indices into meta["tasks"] and meta["devices"]), threads
        (int32). Tasks of a single schedule, failures, and schedules of another version are left out.
    Raises: as records; InputError if the database has nothing to learn from.
    """
    with tempfile.TemporaryDirectory(prefix="hone-") as folder:
        path = os.path.join(folder, "data.npz")
        _native.export_dataset(os.fspath(db), path)
        with np.load(path) as file:
            meta = json.loads(bytes(file["meta"]))
            columns = {name: file[name] for name in file.files if name != "meta" and not name.startswith("record_")}
    columns = {"combined" if name == "measure" else name: column for name, column in columns.items()}
    meta["combined"] = meta.pop("measure")
    return Table(columns, meta)
