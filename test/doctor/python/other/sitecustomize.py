# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
print("the other sitecustomize", flush=True)
