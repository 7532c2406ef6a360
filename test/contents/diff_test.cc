// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
