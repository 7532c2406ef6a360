# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The generators of all operators, and the differences that are known."""

import drawn_elementwise
import drawn_images
import drawn_layout
import drawn_sums

GENERATORS = {
    **drawn_elementwise.GENERATORS,
    **drawn_images.GENERATORS,
    **drawn_layout.GENERATORS,
    **drawn_sums.GENERATORS,
}

# Of the operator: whether a failed case is one, and why it is the CPU EP's.
KNOWN = {}


def known(row, case):
    return ""
