// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::runtime {

// Prepares a model whose main subgraph is a branch of IF or a part of WHILE.
using PrepareSubgraph =
    std::function<Result<std::shared_ptr<hal::PreparedModel>>(std::shared_ptr<const graph::Model>)>;

// Prepares an IF or WHILE that no device takes as a whole. The result runs branches, conditions and
// bodies on the models that `prepare` returns for them. `part` has passed graph::validate() and has
// this one operation. kUnsupported for a WHILE whose body has outputs of unknown size.
Result<std::shared_ptr<hal::PreparedModel>> prepareControlFlow(
    std::shared_ptr<const graph::Model> part, const PrepareSubgraph& prepare);

}  // namespace hearth::runtime
