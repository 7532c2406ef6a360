#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# plugin_test.sh HOST PLUGIN: the plugin runs in the host, and calls no function of the host's.
set -eu
"$1" "$PWD/$2"
