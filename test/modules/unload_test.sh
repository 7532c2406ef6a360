#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# unload_test.sh HOST PLUGIN: the host unloads the plugin while threads that used it live on.
set -eu
"$1" "$PWD/$2"
