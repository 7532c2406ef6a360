// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The rest of a program that links a whole module: linking it is the test, starting it shows that the link is good.
int main(void) { return 0; }
