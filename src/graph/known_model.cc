// SPDX-License-Identifier: Apache-2.0
#include "graph/known_model.h"

namespace hearth::graph {
namespace {

// What the program runs when a thread ends may still call the library.
constinit thread_local bool isThreadOver = false;

struct Known {
  std::weak_ptr<const Model> model;  // so that another one at its address is not taken for it
  bool areOperationsValid = false;

  ~Known() { isThreadOver = true; }
};

Known& known() {
  static thread_local Known last;
  return last;
}

bool isKnown(const Model& model) {
  return !isThreadOver && known().model.lock().get() == &model;
}

}  // namespace

void rememberValid(const std::shared_ptr<const Model>& model) {
  if (isThreadOver) return;
  known().model = model;
  known().areOperationsValid = false;
}

Status validateUnlessKnown(const Model& model) {
  return isKnown(model) ? Status() : validate(model);
}

void rememberValidOperations(const Model& model) {
  if (isKnown(model)) known().areOperationsValid = true;
}

bool areOperationsKnownValid(const Model& model) {
  return isKnown(model) && known().areOperationsValid;
}

}  // namespace hearth::graph
