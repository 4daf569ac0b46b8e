// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::runtime {

// Makes a model ready whose main subgraph is one that IF or WHILE refers to.
using PrepareSubgraph =
    std::function<Result<std::shared_ptr<hal::PreparedModel>>(std::shared_ptr<const graph::Model>)>;

// For an IF or WHILE whose parts no device takes as a whole: a prepared model of this one operation
// that computes branches, conditions and bodies by what `prepare` gives for each. `part` passed
// graph::validate() and has exactly this operation. kUnsupported for a WHILE whose body gives
// tensors of unknown size.
Result<std::shared_ptr<hal::PreparedModel>> prepareControlFlow(
    std::shared_ptr<const graph::Model> part, const PrepareSubgraph& prepare);

}  // namespace hearth::runtime
