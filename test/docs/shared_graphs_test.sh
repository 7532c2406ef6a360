#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The example of graphs that share their scratch says what it saves.
#   shared_graphs_test.sh shared_graphs
set -eu
"$1" > "$TEST_TMPDIR/out"
cat > "$TEST_TMPDIR/expected" <<'END'
apart:
  graph 0 gives 1 and keeps 1.0 MiB
  graph 1 gives 2 and keeps 2.0 MiB
  graph 2 gives 3 and keeps 3.0 MiB
  graph 3 gives 4 and keeps 4.0 MiB
  together 10.0 MiB
shared:
  graph 0 gives 1 and keeps 1.0 MiB
  graph 1 gives 2 and keeps 1.0 MiB
  graph 2 gives 3 and keeps 1.0 MiB
  graph 3 gives 4 and keeps 1.0 MiB
  together 4.0 MiB
END
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
