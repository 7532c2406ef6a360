// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// compare.h: declarations of ours compared with theirs, member by member, as the lines that rows.awk prints ask for.
// All differences are kept, by name. Include the headers and compare.h, then the types, and the rows in a function that
// has an AbiComparison named `comparison`. GCAP_ABI_HAS_THEIRS says that their headers are there: without, our slots
// alone are compared, with what the comments say.
#ifndef GCAP_TEST_ORT_ABI_COMPARE_H_
#define GCAP_TEST_ORT_ABI_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gcap {
namespace testing {

// A type of ours with each struct and enum in it replaced by theirs. Whether a function throws is no part of C.
template <class T>
struct Theirs {
  using type = T;
};
template <class T>
struct Theirs<const T> {
  using type = const typename Theirs<T>::type;
};
template <class T>
struct Theirs<T*> {
  using type = typename Theirs<T>::type*;
};
template <class R, class... A>
struct Theirs<R(A...)> {
  using type = typename Theirs<R>::type(typename Theirs<A>::type...);
};
template <class R, class... A>
struct Theirs<R(A...) noexcept> {
  using type = typename Theirs<R(A...)>::type;
};

template <class T>
constexpr int kNumParameters = -1;  // no function
template <class R, class... A>
constexpr int kNumParameters<R (*)(A...)> = sizeof...(A);

template <class T>
std::string TypeName() {
  const std::string function = __PRETTY_FUNCTION__;  // "... [with T = int; ...]", "... [T = int]"
  const size_t begin = function.find("T = ") + 4;
  std::string name = function.substr(begin, function.find_first_of(";]", begin) - begin);
  for (size_t at; (at = name.find(" *")) != name.npos;) name.erase(at, 1);  // compilers differ
  return name;
}

struct AbiMember {
  size_t offset = 0;
  size_t bytes = 0;
  std::string type;  // as theirs are called
  int num_parameters = -1;
};

template <class T>
AbiMember DescribeMember(size_t offset) {
  using Type = typename Theirs<T>::type;
  return {offset, sizeof(T), TypeName<Type>(), kNumParameters<Type>};
}

class AbiComparison {
 public:
  // `version` is that of their headers, and `newest` the last one that ours know.
  AbiComparison(int version, int newest) : version_(version), newest_(newest) {}

  std::vector<std::string> wrong_slots;  // not where the comment says
  std::vector<std::string> differences;
  std::vector<std::string> skipped;  // members that are newer than their headers
  int num_slots = 0;
  int num_members = 0;
  int num_others = 0;

  void Slot(const std::string& name, size_t offset, int slot) {
    if (slot < 0) return;
    ++num_slots;
    if (offset == slot * sizeof(void*)) return;
    wrong_slots.push_back(name + " says slot " + std::to_string(slot) + ", but is at byte " + std::to_string(offset));
  }

  // `find` describes the member of a struct, and takes no struct that has none. `place`: the type does not matter.
  template <class Ours, class Other, class Find>
  void Member(const std::string& name, int since, bool place, Find find) {
    const AbiMember ours = find(static_cast<Ours*>(nullptr));
    if (since > version_ && later_ == 0) later_ = ours.offset;
    if constexpr (std::is_invocable_v<Find, Other*>) {
      CompareMembers(name, since, place, ours, find(static_cast<Other*>(nullptr)));
    } else if (since > version_) {
      skipped.push_back(name + ", since " + std::to_string(since));
    } else {
      differences.push_back(name + ": at byte " + std::to_string(ours.offset) + ", theirs has no such member");
    }
  }

  // After the members of a struct: the sizes, as of their version, if it is `whole`. A version that ours do not know
  // may have more.
  void End(const std::string& name, bool whole, size_t ours, size_t theirs) {
    const size_t expected = later_ > 0 ? later_ : ours;
    later_ = 0;
    if (!whole) return;
    if (version_ > newest_ ? theirs < expected : theirs != expected) Differ(name, "bytes", expected, theirs);
    ++num_others;
  }

  void Number(const std::string& name, const std::string& what, int64_t ours, int64_t theirs) {
    if (ours != theirs) Differ(name, what, ours, theirs);
    ++num_others;
  }

  void Type(const std::string& name, const std::string& ours, const std::string& theirs) {
    if (ours != theirs) differences.push_back(name + ": '" + ours + "', theirs '" + theirs + "'");
    ++num_others;
  }

 private:
  void CompareMembers(const std::string& name, int since, bool place, const AbiMember& ours, const AbiMember& theirs) {
    if (since > version_) Differ(name, "since version", since, version_);
    if (ours.offset != theirs.offset) Differ(name, "at byte", ours.offset, theirs.offset);
    ++num_members;
    if (ours.bytes != theirs.bytes) {
      Differ(name, "bytes", ours.bytes, theirs.bytes);
    } else if (place) {
      return;
    } else if (ours.num_parameters != theirs.num_parameters) {
      Differ(name, "parameters", ours.num_parameters, theirs.num_parameters);
    } else if (ours.type != theirs.type) {
      differences.push_back(name + ": '" + ours.type + "', theirs '" + theirs.type + "'");
    }
  }

  void Differ(const std::string& name, const std::string& what, int64_t ours, int64_t theirs) {
    differences.push_back(name + ": " + what + " " + std::to_string(ours) + ", theirs " + std::to_string(theirs));
  }

  const int version_;
  const int newest_;
  size_t later_ = 0;  // where the current struct's first member lies that is newer than their headers; 0: there is none
};

}  // namespace testing
}  // namespace gcap

#ifdef GCAP_ABI_HAS_THEIRS
#define GCAP_ABI_WITH_THEIRS(...) __VA_ARGS__
#else
#define GCAP_ABI_WITH_THEIRS(...)
#endif

// In namespace gcap::testing.
#define GCAP_ABI_TYPE(ours, theirs) \
  template <>                       \
  struct Theirs<::ours> {           \
    using type = ::theirs;          \
  };

#define GCAP_ABI_SLOT(ours, member, slot) comparison.Slot(#ours "." #member, offsetof(::ours, member), slot);
#define GCAP_ABI_FIND(ours, theirs, member, slot, since, place)                                            \
  GCAP_ABI_SLOT(ours, member, slot)                                                                        \
  GCAP_ABI_WITH_THEIRS(comparison.Member<::ours, ::theirs>(                                                \
      #theirs "." #member, since, place, [](auto* s) -> decltype(DescribeMember<decltype(s->member)>(0)) { \
        return DescribeMember<decltype(s->member)>(offsetof(std::remove_pointer_t<decltype(s)>, member));  \
      });)

#define GCAP_ABI_MEMBER(ours, theirs, member, slot, since) GCAP_ABI_FIND(ours, theirs, member, slot, since, false)
#define GCAP_ABI_PLACE(ours, theirs, member, slot, since) GCAP_ABI_FIND(ours, theirs, member, slot, since, true)
#define GCAP_ABI_GAP(ours, gap, slot) GCAP_ABI_SLOT(ours, gap, slot)
#define GCAP_ABI_END(ours, theirs, whole) \
  GCAP_ABI_WITH_THEIRS(comparison.End(#theirs, whole, sizeof(::ours), sizeof(::theirs));)
#define GCAP_ABI_ENUM(ours, theirs) \
  GCAP_ABI_WITH_THEIRS(comparison.Number(#theirs, "bytes", sizeof(::ours), sizeof(::theirs));)
#define GCAP_ABI_VALUE(ours, theirs) GCAP_ABI_WITH_THEIRS(comparison.Number(#theirs, "is", ::ours, ::theirs);)
#define GCAP_ABI_FUNCTION(ours, theirs)                                                    \
  GCAP_ABI_WITH_THEIRS(comparison.Type(#theirs, TypeName<typename Theirs<::ours>::type>(), \
                                       TypeName<typename Theirs<::theirs>::type>());)

#endif  // GCAP_TEST_ORT_ABI_COMPARE_H_
