# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
callbacks = []


def register_callback_for_memory_deallocation(callback):
    callbacks.append(callback)
