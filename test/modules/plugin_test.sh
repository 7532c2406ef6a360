#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# plugin_test.sh HOST PLUGIN: the plugin runs in the host, and calls no function of the host's.
set -eu
for name in gcap_graph_evict gcap_scratch_alloc; do
    nm "$2" | grep -q " [tT] $name\$" || {
        echo "gcap has no $name, which the host exports to see that the plugin calls its own: choose another one"
        exit 1
    }
done
"$1" "$PWD/$2"
