# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The library of an execution provider for ONNX Runtime, made with gcap. It imports and brings no onnxruntime.

    onnxruntime.register_execution_provider_library(get_ep_name(), get_library_path())
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == get_ep_name()]
"""

import os

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path():
    """The library's path, for onnxruntime.register_execution_provider_library."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libgcap_ort_plugin_ep.so")


def get_ep_name():
    """The EP's name, as its devices (`ep_name`) and the keys of its options ("ep.<name>.enable_cuda_graph") have it."""
    return "gcap"


def get_ep_names():
    return [get_ep_name()]
