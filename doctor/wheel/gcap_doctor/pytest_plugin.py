# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What pytest loads, by the wheel's entry point, in each of its runs: little, and nothing that an old pytest refuses."""

import pytest

if int(pytest.__version__.split(".")[0]) >= 7:
    from gcap_doctor.pytest_hooks import *  # noqa: F403  pytest takes hooks and fixtures by their names
else:

    @pytest.fixture
    def gcap_check():
        pytest.fail(f"gcap_check needs pytest 7 or later, this is {pytest.__version__}", pytrace=False)
