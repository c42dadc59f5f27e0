"""Hone's execution provider for ONNX Runtime 1.23 and later.

    import onnxruntime, onnxruntime_ep_hone
    onnxruntime.register_execution_provider_library("hone", onnxruntime_ep_hone.get_library_path())
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == onnxruntime_ep_hone.get_ep_name()]
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(devices, {"threads": "4"})
"""
from __future__ import annotations

import importlib.util
import os

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path() -> str:
    """The path of the library that onnxruntime.register_execution_provider_library takes."""
    package = importlib.util.find_spec("hone")
    if package is None or package.origin is None:
        raise ImportError("the package hone is not installed, in which the provider's library lies")
    return os.path.join(os.path.dirname(package.origin), "prefix", "lib", "libhone_onnxruntime_ep.so")


def get_ep_name() -> str:
    """The name of the provider, by which onnxruntime.get_ep_devices() lists its devices."""
    return "HoneExecutionProvider"


def get_ep_names() -> list[str]:
    """The names of all providers in the library: one."""
    return [get_ep_name()]
