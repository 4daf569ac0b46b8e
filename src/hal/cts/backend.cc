// SPDX-License-Identifier: Apache-2.0
#include "hal/cts/backend.h"

namespace hearth::hal::cts {
namespace {

// Inside a function, since initialisers of other files use it before this file's own have run.
std::vector<Backend>& registry() {
  static std::vector<Backend> list;
  return list;
}

}  // namespace

bool registerBackend(Backend backend) {
  registry().push_back(std::move(backend));
  return true;
}

const std::vector<Backend>& backends() {
  return registry();
}

}  // namespace hearth::hal::cts
