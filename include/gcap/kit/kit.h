// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kit.h: the kit, for hosts and for providers of kernels. This header has all headers of the kit at once, and of the
// core, but for those that need a library of NVIDIA's or a host's: gcap/kit/ops and gcap/kit/ort.h.
//
// Kit.       The kit is the core put together: models, shapes by operator, EPs, an EP on the CPU, a small host that
//            runs models on EPs, operators, and an adapter to ONNX Runtime. A program may use it as it is, or read it
//            as an example of the core's use.
// Promise.   The kit promises less than the core: a minor version may break a program that uses it, after 1.0 too.
//            CHANGELOG.md says where. A patch version does not.
// Rules.     Those of gcap/gcap.h hold for the kit's headers too.
// Fork.      In a child process that was forked after its parent had used gcap, these may answer as in the parent:
//            gcap_ep_create, gcap_ep_claim, and those functions of gcap/kit/ep.h whose answer is a member of the EP's
//            table or a default. The functions of gcap/kit/ops answer the error of CUDA.
#ifndef GCAP_KIT_KIT_H_
#define GCAP_KIT_KIT_H_

#include "gcap/gcap.h"
#include "gcap/kit/check.h"
#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/ep.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/io_binding.h"
#include "gcap/kit/model.h"
#include "gcap/kit/run_options.h"
#include "gcap/kit/session.h"
#include "gcap/kit/shape_inference.h"

#endif  // GCAP_KIT_KIT_H_
