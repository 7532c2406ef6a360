// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kit.hpp: the kit for C++17: owners of its objects, for gcap::own. gcap/gcap.hpp has all else, and is included here.
//
//     auto ep = gcap::own<gcap_cpu_ep_create>().value_or_throw();  // a gcap::ep
#ifndef GCAP_KIT_KIT_HPP_
#define GCAP_KIT_KIT_HPP_

#include "gcap/gcap.hpp"
#include "gcap/kit/kit.h"

namespace gcap {

using ep = owner<gcap_ep_destroy>;
using io_binding = owner<gcap_io_binding_destroy>;
using session = owner<gcap_session_destroy>;

namespace detail {

// clang-format off
template <> struct owner_of<gcap_ep_t*> : type_is<ep> {};
template <> struct owner_of<gcap_io_binding_t*> : type_is<io_binding> {};
template <> struct owner_of<gcap_session_t*> : type_is<session> {};
// clang-format on

}  // namespace detail
}  // namespace gcap

#endif  // GCAP_KIT_KIT_HPP_
