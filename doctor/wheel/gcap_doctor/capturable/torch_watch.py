# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Watches PyTorch's operators while a capture is open: work on a stream that does not capture, copies of pageable memory.

The idea: a dispatch mode sees each operator with its tensors, at the moment at which the stream is known that it will
launch on. Kernels that no operator launches are not seen here; gcap-doctor run sees those. Locking: a mode is one thread's.
"""

from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from gcap_doctor.capturable import places, tree
from gcap_doctor.capturable.report import Finding

# Operators that launch nothing.
QUIET = ("empty", "new_empty", "detach", "alias", "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t",
         "select", "slice", "squeeze", "unsqueeze", "as_strided", "split", "unbind", "lift_fresh", "set_", "resize_",
         "record_stream", "is_pinned", "_has_same_storage_numel", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset",
         "narrow", "unfold", "diagonal", "movedim", "_reshape_alias", "split_with_sizes", "chunk", "empty_like",
         "empty_strided", "new_empty_strided", "view_as_real", "view_as_complex", "_conj", "_neg_view", "real", "imag")


def name_of(function):
    """'add' of aten::add.Tensor; other namespaces keep theirs."""
    name = str(function)  # aten.add.Tensor
    parts = name.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else name


class Watcher(TorchDispatchMode):
    def __init__(self, torch, folders):
        super().__init__()
        self.torch, self.folders = torch, folders
        self.escaped, self.copies = [], []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        before = [leaf for _, leaf in tree.leaves((args, kwargs), "") if isinstance(leaf, self.torch.Tensor)]
        result = function(*args, **kwargs)
        tensors = before + [leaf for _, leaf in tree.leaves(result, "") if isinstance(leaf, self.torch.Tensor)]
        if any(tensor.is_cuda for tensor in tensors) and name_of(function) not in QUIET:
            self._note(function, tensors)
        return result

    def _note(self, function, tensors):
        if not self.torch.cuda.is_current_stream_capturing():
            self.escaped.append((name_of(function), places.of_caller(self.folders)))
            return
        if name_of(function) in ("copy_", "_to_copy"):
            for tensor in tensors:
                if tensor.device.type == "cpu" and tensor.numel():
                    self.copies.append((StorageWeakRef(tensor.untyped_storage()), tensor.is_pinned(),
                                        places.of_caller(self.folders)))

    def not_watched(self, error):
        text = str(error).strip().split("\n")[0]
        return [Finding("not_watched", f"a second capture, with each operator watched, ended with {type(error).__name__}: "
                                       f"{text}")]

    def findings(self):
        """To be called once all of the capture's tensors are gone."""
        found = []
        if self.escaped:
            name, (file, line, function) = self.escaped[0]
            more = f", and {len(self.escaped) - 1} more operators" if len(self.escaped) > 1 else ""
            found.append(Finding("escaped", f"{name}{more} ran on a stream that takes no part in the capture: once, and not "
                                            "at replays", file, line, "R64", None, function))
        for storage, pinned, (file, line, function) in self.copies:
            if storage.expired():
                found.append(Finding("freed_memory", "a copy of the graph reads or writes a host tensor that is gone since",
                                     file, line, "R37", "keep the host tensor for as long as the graph replays", function))
            elif not pinned:
                found.append(Finding("pageable", "a copy of the graph reads or writes pageable host memory at each replay",
                                     file, line, "R38", None, function))
        return found
