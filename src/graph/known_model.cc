// SPDX-License-Identifier: Apache-2.0
#include "graph/known_model.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/immortal.h"

namespace hearth::graph {
namespace {

// Not in variables of the threads: one with a destructor takes memory when a thread comes to it,
// and the C library ends the process where there is none.
struct Known {
  std::atomic_flag isInUse;
  uint64_t thread = 0;
  std::weak_ptr<const Model> model;  // so that another one at its address is not taken for it
  bool areOperationsValid = false;
};

uint64_t threadNumber() {
  static std::atomic<uint64_t> last = 0;
  static thread_local uint64_t number = 0;
  if (number == 0) number = ++last;
  return number;
}

constexpr size_t kPlaces = 64;
constinit base::Immortal<std::array<Known, kPlaces>> places;

// Calls `use` with what this thread remembers, unless another that shares its place is there just
// now, or was when the process was forked.
template <typename Use>
void withKnown(Use use) {
  const uint64_t thread = threadNumber();
  Known& known = places.get()[thread % kPlaces];
  if (known.isInUse.test_and_set(std::memory_order_acquire)) return;
  if (known.thread != thread) {
    known.thread = thread;
    known.model.reset();
  }
  use(known);
  known.isInUse.clear(std::memory_order_release);
}

bool isIt(const Known& known, const Model& model) {
  return known.model.lock().get() == &model;
}

}  // namespace

void rememberValid(const std::shared_ptr<const Model>& model) {
  withKnown([&](Known& known) {
    known.model = model;
    known.areOperationsValid = false;
  });
}

Status validateUnlessKnown(const Model& model) {
  bool isKnown = false;
  withKnown([&](const Known& known) { isKnown = isIt(known, model); });
  return isKnown ? Status() : validate(model);
}

void rememberValidOperations(const Model& model) {
  withKnown([&](Known& known) {
    if (isIt(known, model)) known.areOperationsValid = true;
  });
}

bool areOperationsKnownValid(const Model& model) {
  bool areValid = false;
  withKnown([&](const Known& known) { areValid = known.areOperationsValid && isIt(known, model); });
  return areValid;
}

}  // namespace hearth::graph
