# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""python -m gcap_doctor"""

import sys

from gcap_doctor import main

sys.exit(main())
