#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# recorded_test.sh RUN_PY GCAP_DOCTOR MISTAKES STALE: in each file gcap-doctor finds what its program says.
set -euo pipefail

export PYTHONDONTWRITEBYTECODE=1 GCAP_DOCTOR_SYMBOLIZER_SECONDS=3600
python3 "$1" --doctor "$2" --mistakes "$3" --stale "$4" --recorded test/doctor/recorded
