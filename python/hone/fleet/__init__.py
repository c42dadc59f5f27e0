"""Tunes models, makes data sets and trains cost models on many machines: the nodes of a Ray cluster.

    import hone.fleet
    report = hone.fleet.tune(["resnet50.onnx", "bert.onnx"], "libraries", db="postgres://hone@db/hone", budget_seconds=3600,
                             address="10.0.0.1:6379")

It needs Ray (pip install 'hone[fleet]'). docs/user/fleet.md describes how nodes are set up. `python -m hone.fleet` is the same as a
command.
"""
from hone.fleet._dataset import DatasetReport, make_dataset
from hone.fleet._progress import FleetProgress
from hone.fleet._sweep import SweepResult, sweep
from hone.fleet._tune import FleetReport, ModelReport, SliceReport, WorkerReport, tune

__all__ = ["DatasetReport", "FleetProgress", "FleetReport", "ModelReport", "SliceReport", "SweepResult", "WorkerReport", "make_dataset", "sweep",
           "tune"]
