// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// walk.h: one public function of gcap under the failure of each CUDA call that it makes. Simulator only.
//
// A walk sets up a scene, calls the function with its nth call failing, takes the scene down, and does so for n = 1, 2,
// … until a call was not there to fail. What must hold each time is in walk.cc, one place for all functions.
#ifndef GCAP_TEST_FAULT_WALK_H_
#define GCAP_TEST_FAULT_WALK_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gcap/status.h"

namespace gcap {
namespace testing {

// What a function needs around it.
class Scene {
 public:
  virtual ~Scene() = default;
  // Expects that the scene's stream does work, and that a run, its capture and a replay give the right result.
  virtual void ExpectNextRunWorks() = 0;
  // The stream that captures, if one does.
  virtual cudaStream_t CapturingStream() = 0;
  // Takes all down that is still there.
  virtual gcap_status_t End() = 0;
};

// By which a capture learns what an executable takes.
inline const std::set<std::string> kMeasurements = {"cudaGetDevice", "cudaMemGetInfo"};

enum class Calls { kSome, kNone };  // whether the function calls CUDA

struct Walk {
  std::string function;  // as the header spells it
  std::string variant;   // empty, or what sets this walk apart from another one of the function
  std::function<std::unique_ptr<Scene>()> make;
  std::function<gcap_status_t(Scene*)> act;
  std::function<void(Scene*)> after;  // when `act` succeeded: closes what it opened. May be empty
  bool closes_failures = false;       // `after` also follows a failure
  Calls calls = Calls::kSome;
  // CUDA functions whose failure the function answers with success: it did its work another way, and logs what failed.
  // "*" stands for any: a run of which a capture fails is done again eagerly.
  std::set<std::string> recovers_from;
  bool logs_recovery = true;  // false: what failed was a question that another call answers as well

  std::string Name() const { return variant.empty() ? function : function + " (" + variant + ")"; }
  Walk&& MakesNoCall() && { return calls = Calls::kNone, std::move(*this); }
  Walk&& Recovers() && { return std::move(*this).RecoversFrom({"*"}); }
  Walk&& RecoversFrom(std::set<std::string> functions) && {
    return recovers_from = std::move(functions), std::move(*this);
  }
  Walk&& WithoutALog() && { return logs_recovery = false, std::move(*this); }
  template <typename SceneType>
  Walk&& Then(void (*close)(SceneType*)) && {
    after = [close](Scene* scene) { close(static_cast<SceneType*>(scene)); };
    return std::move(*this);
  }
  template <typename SceneType>
  Walk&& AlwaysThen(void (*close)(SceneType*)) && {
    closes_failures = true;
    return std::move(*this).template Then<SceneType>(close);
  }
};

// A walk over `act` in a scene of the given type, after `prepare`, which must succeed.
template <typename SceneType>
Walk WalkOf(std::string function, gcap_status_t (*act)(SceneType*), void (*prepare)(SceneType*) = nullptr,
            std::string variant = "") {
  Walk walk;
  walk.function = std::move(function);
  walk.variant = std::move(variant);
  walk.make = [prepare]() -> std::unique_ptr<Scene> {
    auto scene = std::make_unique<SceneType>();
    if (prepare != nullptr) prepare(scene.get());
    return scene;
  };
  walk.act = [act](Scene* scene) { return act(static_cast<SceneType*>(scene)); };
  return walk;
}

// The act of a walk over a scene `s`: an expression, or one call of a function behind that function's name.
#define ACT(expression) [](S* s) -> gcap_status_t { return (void)s, (expression); }
#define CALL(function, ...) #function, ACT(function(__VA_ARGS__))

// Walks, and expects all that must hold.
void ExpectSurvivesFaults(const Walk& walk);

std::vector<Walk> Joined(std::initializer_list<std::vector<Walk>> parts);

// The walks, by module.
std::vector<Walk> StreamWalks();
std::vector<Walk> CaptureWalks();
std::vector<Walk> GraphWalks();
std::vector<Walk> MemoryWalks();
std::vector<Walk> EpWalks();
std::vector<Walk> SessionWalks();

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_FAULT_WALK_H_
